// Waits between attempts to reach a coordinator: exponential with jitter, so that a farm does not come back in step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>

#include "absl/time/time.h"

namespace grove::worker {

// Pure but for its generator. Thread-compatible.
class Backoff {
 public:
  struct Options {
    absl::Duration initial = absl::Milliseconds(200);
    // Below the lease (15 s): a worker is back before its work is given away. 50 workers knock 5 times a second between
    // them.
    absl::Duration max = absl::Seconds(10);
  };

  Backoff(Options options, uint64_t seed) : options_(options), random_(seed) {}

  // The n-th wait since Reset lies between half and the whole of min(max, initial * 2^n): never near zero, as full
  // jitter would be, since a coordinator that starts up needs its CPU.
  absl::Duration Next() {
    const absl::Duration ceiling = std::min(options_.max, options_.initial * static_cast<double>(int64_t{1} << step_));
    if (step_ < 20) ++step_;
    return ceiling * std::uniform_real_distribution<double>(0.5, 1.0)(random_);
  }
  void Reset() { step_ = 0; }

 private:
  const Options options_;
  std::mt19937_64 random_;
  int step_ = 0;
};

}  // namespace grove::worker
