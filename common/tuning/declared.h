// Parameters that a candidate declares in its source, with the values that are to be tried. Pure.
//
// A declaration is a comment at the end of the line that holds the value:
//
//   constexpr int kTile = 16;   // grove: try 16 32 64          C++, CUDA, and such text inside a Python string
//   BLOCK = 128                 # grove: try 128 256            Python
//   #define UNROLL 4            // grove: try 4, 8
//
// The first value stands in the line, once, as a word of its own, and is replaced by each of the others: the file is
// complete without whoever reads the comment. docs/candidates.md tells it to users.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace grove::tuning {

inline constexpr std::size_t kMaxValues = 16;        // of one
inline constexpr std::size_t kMaxValueBytes = 64;    // of one value: a number or a name, [A-Za-z0-9_.+-]
inline constexpr std::size_t kMaxNameBytes = 64;     // longer ones are cut
inline constexpr std::size_t kMaxCombinations = 64;  // each is built, checked and timed

struct Declared {
  std::string name;  // the word before the value: "kTile"; of two with one name also the line, "kTile:12"
  std::vector<std::string> values;  // two or more, different, the one that stands in the line first
  std::size_t value_at = 0;         // where that stands in the source, bytes
  std::size_t verb_at = 0;          // where "try" stands
};

// In their order; empty where there are none. INVALID_ARGUMENT with the line, and what to do.
absl::StatusOr<std::vector<Declared>> FindDeclared(absl::string_view source);

// One value of each, for every combination: as the source stands first, then with the last one changing fastest.
std::vector<std::vector<std::string>> Combinations(const std::vector<Declared>& declared);

// The source with these values, one for each that it declares (FindDeclared of it), in which nothing is declared any
// more: "try" reads "tried". INVALID_ARGUMENT where the values do not fit.
absl::StatusOr<std::string> WithValues(absl::string_view source, const std::vector<Declared>& declared,
                                       const std::vector<std::string>& values);

}  // namespace grove::tuning
