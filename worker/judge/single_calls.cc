#include "worker/judge/single_calls.h"

#include <algorithm>
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

double BeyondAlone(TimedRuns& timed, Values& values, CandidateSide& rival, std::size_t calls, double each,
                   double asking, double most) {
  double beyond = 0;
  for (int attempt = 0; attempt < kSingleAttempts; ++attempt) {
    std::vector<double> walls;
    for (int i = 0; i < kSingleCalls && (i < kLeastSingleCalls || i * (each + values.draw_seconds()) < most); ++i) {
      const Sets sets = timed.Pick(1);
      values.Refill(sets);
      const TimedRun run = timed.Other(rival, /*rival=*/true, sets);
      walls.push_back(run.seconds + run.late - asking);
    }
    if (*std::min_element(walls.begin(), walls.end()) <= MostAlone(calls, each, asking)) return 0;
    beyond = attempt == 0 ? Median(walls) - each : std::min(beyond, Median(walls) - each);
  }
  return beyond;
}

}  // namespace grove::judge
