// The judge's clock, and seconds on it.
#pragma once

#include <chrono>

namespace grove::judge {

using Clock = std::chrono::steady_clock;

inline double Since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

}  // namespace grove::judge
