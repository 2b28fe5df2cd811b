// A clock that moves only when told to.
#pragma once

#include <mutex>

#include "common/base/clock.h"

namespace grove::testing {

// Thread-safe.
class FakeClock : public Clock {
 public:
  absl::Time Now() override {
    std::lock_guard<std::mutex> lock(mu_);
    return epoch_ + elapsed_;
  }
  absl::Duration Monotonic() override {
    std::lock_guard<std::mutex> lock(mu_);
    return elapsed_;
  }
  void Advance(absl::Duration by) {
    std::lock_guard<std::mutex> lock(mu_);
    elapsed_ += by;
  }

 private:
  std::mutex mu_;
  const absl::Time epoch_ = absl::FromUnixSeconds(1'700'000'000);
  absl::Duration elapsed_ = absl::Seconds(1);
};

}  // namespace grove::testing
