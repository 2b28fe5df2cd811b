// Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011): numbers by key
// and position, for kernels. Who sees some of them does not see the key in them, as with splitmix64.
#pragma once

#include <cstdint>

#include "worker/judge/anywhere.h"

namespace grove::judge {

struct PhiloxNumbers {
  std::uint32_t words[4];
};

GROVE_ANYWHERE inline PhiloxNumbers Philox(std::uint64_t key, std::uint64_t position) {
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  std::uint32_t c0 = static_cast<std::uint32_t>(position), c1 = static_cast<std::uint32_t>(position >> 32), c2 = 0,
                c3 = 0;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t one = std::uint64_t{0xD2511F53} * c0, two = std::uint64_t{0xCD9E8D57} * c2;
    c0 = static_cast<std::uint32_t>(two >> 32) ^ c1 ^ k0;
    c1 = static_cast<std::uint32_t>(two);
    c2 = static_cast<std::uint32_t>(one >> 32) ^ c3 ^ k1;
    c3 = static_cast<std::uint32_t>(one);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

}  // namespace grove::judge
