// Lower precision leaves its mark where its size does not show. Over a long sum of products of values as drawn the
// errors of rounded factors average out, to about what one float32 accumulator makes; but what they are is known: the
// reference in float64 on factors that are rounded so gives them, element by element, and errors of honest programs are
// not like them. docs/correctness.md ("The mark of rounded inputs") derives the constants.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <string>
#include <vector>

#include "worker/judge/expected.h"
#include "worker/judge/problem.h"
#include "worker/judge/random.h"
#include "worker/judge/reference.h"

namespace grove::judge {

// What was found, for people; empty where nothing was.
struct Lowering {
  std::string how;         // "rounded to the 7 bits of bfloat16"
  std::size_t output = 0;  // whose errors are those
  double share = 0;        // of them that it has: 1 = as large as of that input rounded
  double correlation = 0;
  bool found() const { return !how.empty(); }
};

// Whether there may be any: products of float32 over long sums (LoadedProblem::float_factors), all of whose matrices
// use their bits and are not nearly constant. (A float32 accumulator rounds what is added to it, so that a plain sum of
// values may be off by what rounding those to few bits is, too.)
bool MayShowLowering(const LoadedProblem& problem, const std::vector<Leaf>& leaves);

// Of what a candidate `got` for `leaves`: whether its errors are those of the factors rounded to the bits of half
// precision and TF32, or of bfloat16. The shape set of the draw is selected. `expected` has outputs in float64. Nothing
// is said of outputs of few elements, of what errors on grids that nobody uses have in common as much, nor where the
// reference's own errors are like any of them. Throws what the reference throws where there is no memory.
Lowering FindLowering(const LoadedProblem& problem, const std::vector<Leaf>& leaves, const Expected& expected,
                      const std::vector<at::Tensor>& got, Random* random);
// What that takes at best, where it finds nothing.
double LoweringSeconds(const LoadedProblem& problem);

}  // namespace grove::judge
