// What a call takes that nothing else is behind. All inputs of a run lie before a candidate at once, and on a GPU that
// one call does not fill, the first could do the work of many; a call by itself cannot hide that. docs/timing.md:
// "Calls of one run". All times are seconds.
#pragma once

#include <cstddef>

#include "worker/judge/check.h"
#include "worker/judge/sampled_outputs.h"
#include "worker/judge/side.h"
#include "worker/judge/timed_runs.h"
#include "worker/judge/values.h"

namespace grove::judge {

inline constexpr int kSingleCalls = 9, kLeastSingleCalls = 3;  // of one attempt; the least, where they take long
inline constexpr int kSingleAttempts = 3;

// A single call may take so long, where one of a run of `calls` takes `each` and asking costs `asking`. Infinite where
// such runs say nothing of it.
double MostAlone(std::size_t calls, double each, double asking);

struct RivalCalls {
  CandidateSide& rival;
  Check& check;
  Values& values;
  TimedRuns& timed;
  SampledOutputs& sampled;
  std::size_t calls;  // of its timed runs
  double each;        // what one of these takes
  double asking;
  double most;  // that single calls of one attempt may take
};

// By what a call of this rival's takes longer by itself, where it is far more each time; 0 where it is not, or where
// there is no time left for it. On a GPU.
// The outputs of the quickest are compared. Throws Verdict.
double BeyondAlone(const RivalCalls& of);

}  // namespace grove::judge
