// The course of a comparison that is timed in several pairs of processes (common/measure/replicas.h): the first pair is
// checked as any candidate is, the others as little as is honest. It evaluates through what it is given, so that a test
// can play the device.
#pragma once

#include <functional>
#include <optional>

#include "grove/v1/services.pb.h"

namespace grove::worker {

// One pair of fresh processes, `replica` from 0: what came of it, or nothing when the work was cancelled.
using EvaluateReplica = std::function<std::optional<v1::WorkResult>(int replica, const v1::EvaluateWork& work)>;

// `work.options.replicas` of them, and their result as one. The first pair in which the candidate is not correct
// decides for all, as does one without a verdict. Where the rival fails there is nothing left to compare: no more are
// made, and the times against the reference are those of the pairs until then. Nothing when it was cancelled.
std::optional<v1::WorkResult> RunReplicas(const v1::EvaluateWork& work, const EvaluateReplica& evaluate);

}  // namespace grove::worker
