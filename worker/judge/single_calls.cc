#include "worker/judge/single_calls.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "worker/judge/statistics.h"

namespace grove::judge {
namespace {

// A call by itself may take twice what a call in a run of so many and more does, for there what the host does for one
// is done while the device works on another, and of what asking costs a share, and a moment: processes and clocks that
// have rested, code and weights in no cache.
constexpr double kMoreAlone = 2, kDearerAlone = 0.25, kDearerAloneOnce = 100e-6;
constexpr std::size_t kFewCalls = 3;

}  // namespace

double MostAlone(std::size_t calls, double each, double asking) {
  if (calls < kFewCalls) return std::numeric_limits<double>::infinity();
  return kMoreAlone * each + kDearerAlone * asking + kDearerAloneOnce;
}

double BeyondAlone(const RivalCalls& of) {
  const double allowed = MostAlone(of.calls, of.each, of.asking);
  // What was measured is not to be lost for it.
  const double once = kMoreAlone * std::max(of.each, 0.0) + of.values.draw_seconds();
  if (!std::isfinite(allowed) || of.rival.conversation().Left() < kSingleAttempts * kSingleCalls * once + 1) return 0;
  double beyond = 0;
  for (int attempt = 0; attempt < kSingleAttempts; ++attempt) {
    std::vector<double> walls;
    for (int i = 0; i < kSingleCalls && (i < kLeastSingleCalls || i * once < of.most); ++i) {
      const Sets sets = of.timed.Pick(1);
      of.values.Refill(sets);
      of.rival.Keep(sets);
      const TimedRun run = of.timed.Other(of.rival, /*rival=*/true, sets);
      walls.push_back(run.seconds + run.late - of.asking);
      if (walls.back() <= *std::min_element(walls.begin(), walls.end())) {  // it decides
        of.sampled.VerifyKept(&of.rival, &of.check, sets);
      }
    }
    if (*std::min_element(walls.begin(), walls.end()) <= allowed) return 0;
    beyond = attempt == 0 ? Median(walls) - of.each : std::min(beyond, Median(walls) - of.each);
  }
  return beyond;
}

}  // namespace grove::judge
