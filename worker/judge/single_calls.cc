#include "worker/judge/single_calls.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "worker/judge/statistics.h"

namespace grove::judge {
namespace {

// A call by itself may take twice what a call in a run of so many and more does, for there what the host does for one
// is done while the device works on another, and of what asking costs a share, and a moment: processes and clocks that
// have rested, code and weights in no cache.
constexpr double kMoreAlone = 2, kDearerAlone = 0.25, kDearerAloneOnce = 100e-6;
constexpr std::size_t kFewCalls = 3;
constexpr int kCalls = 9, kLeastCalls = 3;  // of one attempt; the least, where they take long

double RoomForAsking(double asking) { return kDearerAlone * asking + kDearerAloneOnce; }

double Taken(const TimedRun& run) { return run.seconds + run.late; }

}  // namespace

double MostAlone(std::size_t calls, double each, double asking) {
  if (calls < kFewCalls) return std::numeric_limits<double>::infinity();
  return kMoreAlone * each + RoomForAsking(asking);
}

std::vector<TimedRun> AskAlone(const SingleCalls& of, const std::function<TimedRun(const Sets&)>& run) {
  const double once = of.each + of.values.draw_seconds();
  std::vector<TimedRun> runs;
  for (int i = 0; i < kCalls && (i < kLeastCalls || i * once < of.most); ++i) {
    const Sets set = of.timed.Pick(1);
    of.side.Keep(set);
    runs.push_back(run(set));
    // Who knows a single call when it comes may give nothing.
    if (Taken(runs.back()) <= QuickestAlone(runs, /*asking=*/0)) of.sampled.VerifyKept(&of.side, &of.check, set);
  }
  return runs;
}

double QuickestAlone(const std::vector<TimedRun>& runs, double asking) {
  double quickest = std::numeric_limits<double>::infinity();
  for (const TimedRun& run : runs) quickest = std::min(quickest, Taken(run));
  return quickest - asking;
}

double CountsAlone(const std::vector<TimedRun>& runs, double asking) {
  std::vector<double> taken;
  for (const TimedRun& run : runs) taken.push_back(Taken(run));
  return Median(taken) - asking + std::min(asking, RoomForAsking(asking));
}

double BeyondAlone(const SingleCalls& of, std::size_t calls, double asking) {
  const double allowed = MostAlone(calls, of.each, asking);
  // What was measured is not to be lost for it.
  const double once = kMoreAlone * std::max(of.each, 0.0) + of.values.draw_seconds();
  if (!std::isfinite(allowed) || of.side.conversation().Left() < kSingleAttempts * kCalls * once + 1) return 0;
  double beyond = std::numeric_limits<double>::infinity();
  for (int attempt = 0; attempt < kSingleAttempts; ++attempt) {
    const std::vector<TimedRun> runs = AskAlone(of, [&of](const Sets& set) {
      of.values.Refill(set);
      return of.timed.Other(of.side, /*rival=*/true, set);
    });
    if (QuickestAlone(runs, asking) <= allowed) return 0;
    beyond = std::min(beyond, CountsAlone(runs, asking) - of.each);
  }
  return beyond;
}

}  // namespace grove::judge
