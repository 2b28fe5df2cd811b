// Waiting without sleep, where a clock runs meanwhile.
#pragma once

namespace grove::wire {

// Who spins takes a processor; on machines with fewer than these nobody should.
inline constexpr unsigned kProcessorsToSpin = 4;

}  // namespace grove::wire
