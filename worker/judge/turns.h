// How often the reference may be evaluated for one purpose.
#pragma once

#include <algorithm>
#include <chrono>

namespace grove::judge {

// Counted in the seconds that one evaluation takes at best, and not by the clock: on a busy machine the clock runs out
// after fewer evaluations, and a verdict would depend on who else computes there. The clock ends it only where
// evaluations have become kPatience times as slow.
class Turns {
 public:
  explicit Turns(double seconds) : seconds_(seconds) {}

  // One more that takes `each` seconds at best, if there is time for it.
  bool Take(double each) {
    each = std::max(each, 0.0);
    if (used_ + each > seconds_) return false;
    if (std::chrono::duration<double>(Clock::now() - begin_).count() > kPatience * seconds_) return false;
    used_ += each;
    return true;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double kPatience = 5;

  double seconds_, used_ = 0;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace grove::judge
