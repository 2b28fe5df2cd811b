// Randomness: seeded where a result must repeat (intervals), secret where a candidate must not guess (inputs, order).
#pragma once

#include <cstdint>

namespace grove::judge {

// splitmix64: small, seeded, the same everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t Next();
  std::uint64_t Below(std::uint64_t bound);  // 0 to bound - 1
  double Uniform();                          // [0, 1)

 private:
  std::uint64_t state_;
};

// From the kernel; fits in a signed 64-bit integer, which is what torch takes.
std::uint64_t SecretSeed();

}  // namespace grove::judge
