#include "worker/judge/random.h"

#include <sys/random.h>

#include <limits>
#include <stdexcept>

namespace grove::judge {

Random Random::Secret() {
  Random random(0);
  random.secret_ = true;
  return random;
}

std::uint64_t Random::Next() {
  if (secret_) {
    if (left_ == 0) {
      if (::getrandom(kernels_.data(), sizeof kernels_, 0) != sizeof kernels_) {
        throw std::runtime_error("getrandom failed");
      }
      left_ = kernels_.size();
    }
    return kernels_[--left_];
  }
  std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

std::uint64_t Random::Below(std::uint64_t bound) {
  // Rejection keeps it even; a bound of 0 is a caller's mistake and gives 0.
  if (bound == 0) return 0;
  const std::uint64_t limit =
      std::numeric_limits<std::uint64_t>::max() - std::numeric_limits<std::uint64_t>::max() % bound;
  for (;;) {
    const std::uint64_t value = Next();
    if (value < limit) return value % bound;
  }
}

double Random::Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

std::uint64_t SecretSeed() {
  std::uint64_t seed = 0;
  if (::getrandom(&seed, sizeof seed, 0) != sizeof seed) throw std::runtime_error("getrandom failed");
  return seed >> 1;
}

}  // namespace grove::judge
