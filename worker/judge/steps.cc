#include "worker/judge/steps.h"

#include <algorithm>
#include <vector>

#include "worker/judge/give_steps.h"
#include "worker/judge/statistics.h"

namespace grove::judge {
namespace {

// A call in steps may take twice what one in a run takes, as one by itself may (lies.cc); of what a step costs a share;
// and a moment: on a GPU what launching and waiting for it take, which calls in a row share.
constexpr double kMore = 2, kDearer = 0.25, kOnceCpu = 3e-6, kOnceCuda = 8e-6;
// And so many times what the judge's own thread waits when it is asked in the same way.
constexpr double kBusy = 4;
constexpr int kAttempts = 3;
constexpr std::size_t kFewCalls = 3;  // of a run
constexpr std::size_t kLeastSteps = 6, kMostSteps = 24;
constexpr double kLongest = 10e-3;  // of a call: work for many of them shows in single calls, on a GPU
constexpr double kDrawing =
    0.1;  // of drawing the values of one attempt and of computing its results, but for the least

}  // namespace

double BeyondInSteps(const InSteps& in) {
  const double each =
      (Median(in.runs.runs) + Median(in.runs.runs_late) - in.asking) / static_cast<double>(in.runs.calls);
  const double asking = in.candidate.step_asking();
  if (!in.candidate.in_steps() || asking <= 0 || in.runs.calls < kFewCalls || each > kLongest) return 0;
  const double drawn = kDrawing / std::max(in.values.draw_seconds() + in.reference_seconds, 1e-9);
  const auto fit = static_cast<std::size_t>(std::min(drawn, static_cast<double>(kMostSteps)));
  const std::size_t steps = std::min({std::max(fit, kLeastSteps), in.timed.slots(), in.candidate.MostKept()});
  if (steps < kFewCalls) return 0;
  double beyond = 0;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const Sets sets = in.timed.Pick(steps);
    in.values.Refill(sets);
    std::vector<double> seconds = in.candidate.RunInSteps(sets);
    in.sampled.VerifyKept(sets);
    seconds.erase(seconds.begin());  // wakes up
    const double most = kMore * std::max(each, 0.0) + kDearer * asking + (in.cuda ? kOnceCuda : kOnceCpu) +
                        kBusy * OwnStep(in.candidate.processor());
    // A machine that is busy keeps some of them waiting.
    if (Quantile(seconds, 0.25) - asking <= most) return 0;
    // With what handing over takes: in steps inputs are in a cache, and caches of timed runs are cold.
    const double its = Median(seconds) - each;
    beyond = attempt == 0 ? its : std::min(beyond, its);
  }
  return beyond;
}

}  // namespace grove::judge
