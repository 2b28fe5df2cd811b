// Randomness: seeded where a result must repeat (intervals), secret where a candidate must not guess (inputs, order).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace grove::judge {

// splitmix64: small, seeded, the same everywhere; who sees one number knows all others. Or the kernel's, of which
// nobody learns anything by those that he has seen.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  static Random Secret();
  std::uint64_t Next();
  std::uint64_t Below(std::uint64_t bound);  // 0 to bound - 1
  double Uniform();                          // [0, 1)

 private:
  std::uint64_t state_;
  bool secret_ = false;
  std::array<std::uint64_t, 32> kernels_{};  // getrandom gives no more than 256 bytes without interruption
  std::size_t left_ = 0;                     // of these
};

// From the kernel; fits in a signed 64-bit integer, which is what torch takes.
std::uint64_t SecretSeed();

}  // namespace grove::judge
