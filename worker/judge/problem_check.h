// Is a problem a measure of kernels at all? What is wrong with it, with figures and a remedy (`grove problem check`).
// The ids are listed in docs/problems.md.
#pragma once

#include <nlohmann/json.hpp>

#include "worker/judge/device_ops.h"
#include "worker/judge/problem.h"

namespace grove::judge {

// A list of ProblemFinding (proto3 JSON), serious ones first. `description`: what `loaded` says of the problem. Runs
// the reference some ten times. Throws what the reference throws.
nlohmann::json CheckProblem(LoadedProblem& problem, DeviceOps& ops, const nlohmann::json& description);

}  // namespace grove::judge
