// What a program makes on its way from its inputs to its outputs: some elements of what each of its operations gives.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "worker/judge/reference.h"

namespace grove::judge {

// Of what one operation gives.
struct OnTheWay {
  std::string name;     // the operation
  bool coarse = false;  // this or something before it was of a half type
  at::Tensor some;  // [n] float64: its elements at places that a seed decides; undefined where they could not be had
  double least = 0, greatest = 0;  // of all its elements
  std::int64_t place = 0;          // of the greatest
};

// Of the fractions that each operation gives, in the order of a run; `some` are those at the same places in every run
// of the same operations. The first 1,024 results. Throws what the program throws, and a std::runtime_error that tells
// of memory where there was none to look.
std::vector<OnTheWay> SomeOnTheWay(Reference& reference, const std::vector<Leaf>& leaves, Mode mode,
                                   std::uint64_t seed);

// Of two runs on nearly the same values and two on another draw: whether of what one operation gives most elements are
// idle in the first two, and are others than in the last two (zeros, bounds that are kept, or no more than `nothing`
// beside the largest), or most stay what they are within a draw and are others in the other one.
bool MostIdle(const std::array<std::vector<OnTheWay>, 4>& runs, double nothing);

}  // namespace grove::judge
