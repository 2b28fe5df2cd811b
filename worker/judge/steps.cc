#include "worker/judge/steps.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "worker/judge/give_steps.h"
#include "worker/judge/statistics.h"
#include "worker/judge/verdict.h"

namespace grove::judge {
namespace {

// A call in steps may take twice what one in a run takes, as one by itself may (lies.cc); of what a step costs a share;
// and a moment: on a GPU what launching and waiting for it take, which calls in a row share.
constexpr double kMore = 2, kDearer = 0.25, kOnceCpu = 3e-6, kOnceCuda = 8e-6;
// And so many times what the judge's own thread waits when it is asked in the same way.
constexpr double kBusy = 4, kBusySleeping = 1;
constexpr int kAttempts = 3;
constexpr std::size_t kFewCalls = 3;  // of a run
constexpr std::size_t kLeastSteps = 9, kMostSteps = 24;
constexpr double kLongest = 10e-3;  // of a call: work for many of them shows in single calls, on a GPU
// Of drawing the values of one attempt and of computing its results, but for the least of them; and for one step at
// most.
constexpr double kChecking = 0.1, kCheckingOnce = 0.1;

}  // namespace

double BeyondInSteps(const InSteps& in) {
  if (in.runs.runs.empty()) return 0;
  const double each =
      (Median(in.runs.runs) + Median(in.runs.runs_late) - in.asking) / static_cast<double>(in.runs.calls);
  const double checking = in.values.draw_seconds() + in.reference_seconds;
  if (!in.candidate.in_steps() || in.candidate.step_asking(Waiting::kLooking) <= 0 || in.runs.calls < kFewCalls ||
      each > kLongest)
    return 0;
  if (checking > kCheckingOnce) return 0;
  const auto fit = static_cast<std::size_t>(std::min(kChecking / std::max(checking, 1e-9), double{kMostSteps}));
  const std::size_t steps = std::min({std::max(fit, kLeastSteps), in.timed.slots(), in.candidate.MostKept()});
  if (steps < kFewCalls) return 0;
  // What was measured is not to be lost for it: all attempts, in either way.
  const double longest = 2 * kAttempts * static_cast<double>(steps) * (checking + kMore * std::max(each, 0.0)) + 1;
  if (in.candidate.conversation().Left() < longest) return 0;
  double beyond = 0;
  // Seconds by the median, or 0 where they are no more than a call may take.
  const auto attempt = [&](Waiting waiting, double* starved) {
    const double asking = in.candidate.step_asking(waiting);
    const Sets sets = in.timed.Pick(steps);
    in.values.Refill(sets);
    const double own = OwnStep(in.candidate.processor(), waiting);
    GivenSteps given = in.candidate.RunInSteps(sets, waiting);
    in.sampled.VerifyKept(sets);
    *starved = given.starved;
    given.seconds.erase(given.seconds.begin());  // wakes up
    const double most = kMore * std::max(each, 0.0) + kDearer * asking + (in.cuda ? kOnceCuda : kOnceCpu) +
                        (waiting == Waiting::kSleeping ? kBusySleeping : kBusy) * own;
    // A machine that is busy keeps some of them waiting.
    return Quantile(given.seconds, 0.25) - asking <= most ? 0 : Median(given.seconds);
  };
  bool crowded = false;
  for (int i = 0; i < kAttempts; ++i) {
    double starved = 0;
    double seconds = attempt(Waiting::kLooking, &starved);
    if (seconds > 0 && starved > kStarved) {
      crowded = true;
      seconds = attempt(Waiting::kSleeping, &starved);
    }
    if (seconds <= 0) return 0;
    // With what handing over takes: in steps inputs are in a cache, and caches of timed runs are cold.
    beyond = i == 0 ? seconds - each : std::min(beyond, seconds - each);
  }
  if (!crowded) return beyond;
  char text[400];
  std::snprintf(
      text, sizeof text,
      "a call takes %.3g s when it is given by itself and %.3g s in a run, and threads that never rest have all "
      "processors, so that it cannot be told why: let them sleep while there is nothing to do, or leave a "
      "processor free",
      beyond + each, each);
  throw Verdict{"VERDICT_UNMEASURABLE", text, {}};
}

}  // namespace grove::judge
