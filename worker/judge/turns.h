// How often the reference may be evaluated for one purpose.
#pragma once

#include <algorithm>
#include <chrono>

namespace grove::judge {

// Counted in `each`, the seconds that one evaluation takes at best, and not by the clock: on a busy machine the clock
// runs out after fewer evaluations, and a verdict would depend on who else computes there. The clock ends it only where
// evaluations have become kPatience times as slow.
class Turns {
 public:
  Turns(double seconds, double each) : seconds_(seconds), each_(std::max(each, 0.0)) {}

  // One more, if there is time for it.
  bool Take() {
    if (used_ + each_ > seconds_) return false;
    if (std::chrono::duration<double>(Clock::now() - begin_).count() > kPatience * seconds_) return false;
    used_ += each_;
    return true;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double kPatience = 20;

  double seconds_, each_, used_ = 0;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace grove::judge
