// What a call takes when its inputs come after the outputs of the one before. All inputs of a timed run lie before the
// candidate at once, so that its first call could do the work of all for little more than that of one; in steps nobody
// can. docs/timing.md: "Calls in steps". All times are seconds.
#pragma once

#include "worker/judge/check.h"
#include "worker/judge/sampled_outputs.h"
#include "worker/judge/side.h"
#include "worker/judge/timed_runs.h"
#include "worker/judge/values.h"

namespace grove::judge {

struct InSteps {
  CandidateSide& candidate;  // or its rival
  Check& check;              // of that
  Values& values;
  TimedRuns& timed;
  SampledOutputs& sampled;
  std::size_t calls;         // of its timed runs
  double each;               // what one of these takes
  double reference_seconds;  // of a call
  double left_by_sampling;   // of run_wall_seconds: what only its own runs can have used up since, if it is used up
  bool cuda;
  bool cold;  // caches, in timed runs
};

struct Beyond {
  double seconds = 0;    // what a call takes more in steps than in a run, where that is far more
  bool no_time = false;  // there were no steps for want of time
};

// When all is sampled. Nothing where there are no steps, or calls are too long to be told. Every output is compared.
// Throws Verdict.
Beyond BeyondInSteps(const InSteps& in);

}  // namespace grove::judge
