#include "worker/pipeline/slot_clock.h"

#include <algorithm>

namespace grove::worker {

void SlotClock::Enter(const std::string& state, absl::Time now) {
  seconds_[state_] += std::max(0.0, absl::ToDoubleSeconds(now - since_));
  since_ = std::max(since_, now);
  state_ = state;
}

std::map<std::string, double> SlotClock::Seconds(absl::Time now) const {
  std::map<std::string, double> seconds = seconds_;
  seconds[state_] += std::max(0.0, absl::ToDoubleSeconds(now - since_));
  return seconds;
}

}  // namespace grove::worker
