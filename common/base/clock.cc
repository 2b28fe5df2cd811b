#include "common/base/clock.h"

#include <ctime>

namespace grove {

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
