// What a call takes that nothing else is behind. All inputs of a run lie before a candidate at once, and on a GPU that
// one call does not fill, the first could do the work of many; a call by itself cannot hide that. docs/timing.md:
// "Calls of one run". All times are seconds.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "worker/judge/check.h"
#include "worker/judge/sampled_outputs.h"
#include "worker/judge/side.h"
#include "worker/judge/timed_runs.h"
#include "worker/judge/values.h"

namespace grove::judge {

inline constexpr int kSingleAttempts = 3;

// A single call may take so long, what asking costs taken off, where one of a run of `calls` takes `each` and asking
// costs `asking`. Infinite where such runs say nothing of it.
double MostAlone(std::size_t calls, double each, double asking);

struct SingleCalls {
  CandidateSide& side;
  Check& check;  // of that
  Values& values;
  TimedRuns& timed;
  SampledOutputs& sampled;
  double each;  // what a call may be thought to take
  double most;  // that they may take together, but for the least of them
};

// One attempt: some single calls on new values, each made by `run`. The outputs of the quickest, which decides, are
// compared. Throws Verdict.
std::vector<TimedRun> AskAlone(const SingleCalls& of, const std::function<TimedRun(const Sets&)>& run);

// What the quickest of them took, asking taken off: that is compared with MostAlone.
double QuickestAlone(const std::vector<TimedRun>& runs, double asking);
// What a call counts where that is far more: the usual one, with as much of asking as MostAlone leaves room for, within
// which nobody can tell what of it is asking.
double CountsAlone(const std::vector<TimedRun>& runs, double asking);

// By what a call of this rival's takes longer by itself, where it is far more each time, as of a candidate's (lies.h);
// 0 where it is not, or where there is no time left for it. On a GPU. `calls`: of its timed runs, one of which takes
// `of.each`. Throws Verdict.
double BeyondAlone(const SingleCalls& of, std::size_t calls, double asking);

}  // namespace grove::judge
