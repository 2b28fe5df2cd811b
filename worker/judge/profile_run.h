// A candidate run once for a profiler that watches its process: no check, no clock, no verdict.
#pragma once

#include <string>

#include "common/wire/channel.h"
#include "worker/judge/device_ops.h"
#include "worker/judge/problem.h"

namespace grove::judge {

// Opens the candidate with one set of inputs of the problem's own drawing, runs it once to warm up, draws again, and
// has it run once more with marks for the profiler. `seconds`: for all of it, after which it is given up.
// What went wrong, for people; empty when both runs were done. Throws std::exception when the environment is at fault.
std::string RunForProfiler(LoadedProblem& problem, DeviceOps& ops, wire::Channel candidate, bool python,
                           double seconds);

}  // namespace grove::judge
