// Lower precision leaves its mark where its size does not show. Over a long sum of products of values as drawn the
// errors of rounded factors average out, to about what one float32 accumulator makes. But elements that share a factor
// share its error, whatever grid it was rounded on (common_errors.h); and on the grids of known formats it is known
// what the errors are: the reference in float64 on factors that are rounded so gives them, element by element. Errors
// of honest programs are like neither. docs/correctness-distributions.md ("The mark of rounded inputs", "Errors in
// common") derives the constants.
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
  std::string what;        // "are those of an input rounded to the 7 bits of bfloat16"
  std::string figures;     // by which it was seen
  std::size_t output = 0;  // whose errors they are
  bool found() const { return !what.empty(); }
};

// Whether there may be any: products of float32 over long sums (LoadedProblem::float_factors), all of whose matrices
// use their bits and are not nearly constant. (A float32 accumulator rounds what is added to it, so that a plain sum of
// values may be off by what rounding those to few bits is, too.)
bool MayShowLowering(const LoadedProblem& problem, const std::vector<Leaf>& leaves);

// Of what a candidate `got` for `leaves`: whether its errors are those of factors rounded to some 12 bits or fewer, or,
// where there is time for evaluations, of the factors rounded to the bits of half precision and TF32, or of bfloat16.
// The shape set of the draw is selected. `expected` has outputs in float64. Nothing is said of outputs of few elements,
// of what errors on grids that nobody uses have in common as much, nor where the reference's own errors are like any of
// them. Throws what the reference throws where there is no memory.
Lowering FindLowering(const LoadedProblem& problem, const std::vector<Leaf>& leaves, const Expected& expected,
                      const std::vector<at::Tensor>& got, Random* random);

}  // namespace grove::judge
