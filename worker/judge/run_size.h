// How long timed runs are to be, in seconds, calls and bytes, before anything is known of the candidate.
// docs/timing.md derives every constant.
#pragma once

#include <cstddef>

#include "worker/judge/device_ops.h"
#include "worker/judge/problem.h"
#include "worker/judge/settings.h"

namespace grove::judge {

// How many slots timed runs need, so that the calls of one run each have their own. `in_bytes` and `out_bytes`: of one
// set.
std::size_t TimedSlots(const DeviceOps& ops, const LoadedProblem& problem, const EvaluationSettings& settings,
                       std::size_t in_bytes, std::size_t out_bytes);

// Seconds of a timed run of the faster side, as far as slots go.
double RunSpan(const DeviceOps& ops, const EvaluationSettings& settings);

// Of timed runs, for a candidate as fast as the reference. `slots`: TimedSlots.
struct RunLengths {
  std::size_t most, calls;  // calls at most, and as many as fill the span
  double seconds;
};
RunLengths LengthsOfRuns(const DeviceOps& ops, const LoadedProblem& problem, const EvaluationSettings& settings,
                         std::size_t slots);

// How often asking is tried before a candidate's program is loaded (CandidateSide::LearnAsking).
int PracticeRuns(const DeviceOps& ops, const EvaluationSettings& settings);

}  // namespace grove::judge
