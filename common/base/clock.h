// Time as an argument, so that leases and back-off are tested without sleeping. tests/support/fake_clock.h has the
// fake.
#pragma once

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace grove {

// For limits and for how long something took: it goes on evenly when the wall clock is set. Only differences of it mean
// anything.
absl::Time SteadyNow();

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // Civil time, for records. May jump.
  virtual absl::Time Now() = 0;
  // Time since some fixed point that never jumps, for leases and deadlines.
  virtual absl::Duration Monotonic() = 0;
};

class SystemClock : public Clock {
 public:
  static SystemClock& Get();
  absl::Time Now() override { return absl::Now(); }
  absl::Duration Monotonic() override;
};

}  // namespace grove
