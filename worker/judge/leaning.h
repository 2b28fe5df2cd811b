// Values at which rounding to fewer bits always errs one way, towards zero: the three bits of a float32 behind the ten
// that half precision and TF32 keep (of a float64: behind the 23 that float32 keeps) become 011, so that what is
// rounded off is 0.38 to 0.5 of their spacing. Over a long sum such errors add up; those of values as drawn average
// out. docs/correctness.md: "Leaning values".
#pragma once

#include <cstdint>
#include <cstring>

#include "worker/judge/anywhere.h"

namespace grove::judge {

// How many bits of a float32's and of a float64's fraction the shorter types do not have. (Scalars, which nvcc takes
// from the host.)
inline constexpr int kBeyondFloat = 23 - 10, kBeyondDouble = 52 - 23;

// The first three of them, and what they become.
template <typename Word>
GROVE_ANYWHERE constexpr Word LeaningMask(int beyond) {
  return static_cast<Word>(7) << (beyond - 3);
}
template <typename Word>
GROVE_ANYWHERE constexpr Word LeaningBits(int beyond) {
  return static_cast<Word>(3) << (beyond - 3);
}

inline constexpr double kTiniestFloat = 0x1p-126, kTiniestDouble = 0x1p-1022;  // normal numbers; below, nothing moves

// Whether and within what the values of an input may lean: what would go beyond the others stays, because values may
// end where something does (probabilities at 1).
struct Leaning {
  bool leans = false;
  double least = 0, most = 0;
};

template <typename Word, int kBeyond, typename Float>
GROVE_ANYWHERE Float LeanedWord(Float value, double tiniest, const Leaning& leaning) {
  Word word;
  std::memcpy(&word, &value, sizeof word);
  word = (word & ~LeaningMask<Word>(kBeyond)) | LeaningBits<Word>(kBeyond);
  Float moved;
  std::memcpy(&moved, &word, sizeof moved);
  const Float tiny = static_cast<Float>(tiniest);
  const bool normal = value >= tiny || value <= -tiny;  // of NaN: false
  const bool within = moved >= static_cast<Float>(leaning.least) && moved <= static_cast<Float>(leaning.most);
  return normal && within ? moved : value;
}

GROVE_ANYWHERE inline float Leaned(float value, const Leaning& leaning) {
  return LeanedWord<std::uint32_t, kBeyondFloat>(value, kTiniestFloat, leaning);
}
GROVE_ANYWHERE inline double Leaned(double value, const Leaning& leaning) {
  return LeanedWord<std::uint64_t, kBeyondDouble>(value, kTiniestDouble, leaning);
}

}  // namespace grove::judge
