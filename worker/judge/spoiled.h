// Which bytes of a candidate's inputs are taken away after a timed run (Arena::Spoil).
#pragma once

#include <cstddef>
#include <cstdint>

#include "worker/judge/anywhere.h"

namespace grove::judge {

// Bytes that a comparison leaves out: of every `step` bytes, a power of two, the first kSpoilBytes and as many that the
// secret `key` chooses, `phase` being where the compared piece begins. A step of 0 leaves out nothing.
struct Spoiled {
  std::size_t step = 0, phase = 0;
  std::uint64_t key = 0;
};
inline constexpr std::size_t kSpoilBytes = 16;

// Where in a block of `step` bytes the chosen ones begin: behind the first, by the last step of splitmix64 (random.h).
GROVE_ANYWHERE inline std::size_t SpoiledAt(std::uint64_t key, std::size_t step, std::uint64_t block) {
  std::uint64_t mixed = key + block * 0x9e3779b97f4a7c15;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  mixed ^= mixed >> 31;
  return kSpoilBytes * (1 + static_cast<std::size_t>(mixed % (step / kSpoilBytes - 1)));
}
GROVE_ANYWHERE inline bool LeftOut(const Spoiled& spoiled, std::size_t at) {
  if (spoiled.step == 0) return false;
  const std::size_t within = (spoiled.phase + at) & (spoiled.step - 1);
  if (within < kSpoilBytes) return true;
  const std::size_t chosen = SpoiledAt(spoiled.key, spoiled.step, (spoiled.phase + at) / spoiled.step);
  return within >= chosen && within < chosen + kSpoilBytes;
}

}  // namespace grove::judge
