#include "common/base/clock.h"

#include <ctime>

namespace grove {

absl::Time SteadyNow() { return absl::UnixEpoch() + SystemClock::Get().Monotonic(); }

SystemClock& SystemClock::Get() {
  static SystemClock* clock = new SystemClock;
  return *clock;
}

absl::Duration SystemClock::Monotonic() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return absl::DurationFromTimespec(now);
}

}  // namespace grove
