// Inputs that are the same in every draw: of one value or two (a mask of ones, a causal mask, a state of zeros, a
// scale), or such as no other distribution changes (the weights of a blur, which sum to one). A kernel may know them
// and never read them, so each of the first few has others in one draw of RARE, alone: changed together, one could hide
// another.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <vector>

#include "worker/judge/distributions.h"
#include "worker/judge/random.h"
#include "worker/judge/rare_values.h"
#include "worker/judge/reference.h"

namespace grove::judge {

// Forms of RARE behind those of rare_values.h, two for each such input: what it has instead, and less of that, where
// the reference does not bear the first.
inline constexpr int kFixed = kRareForms, kMostFixed = 12, kFixedForms = 2 * kMostFixed;
inline constexpr bool IsFixed(int form) { return form >= kFixed && form < kFixed + kFixedForms; }
inline constexpr bool LessFixed(int form) { return IsFixed(form) && (form - kFixed) % 2 == 1; }
inline constexpr std::size_t WhichFixed(int form) { return static_cast<std::size_t>(form - kFixed) / 2; }

// The numbers of such inputs that can have others, by two draws and the graph (GraphOp list; what is not known of it is
// null).
// - Of one value, but: infinities and NaN; n values of 1/n, of their logarithm, or of norm one along a dimension of n;
//   whole numbers in integers other than ones (0 is an index that exists, and a length), fewer than sixteen of them, or
//   where the graph has indices or divides integers.
// - Masks of two values, zero (or false) and one, minus infinity or a number of -64 or less, sixty-four elements or
//   more; not what has one place in each row or column (one-hot codes, permutations).
// - Weights that sum to one over the last dimension or the second; directions and rows without a mean. Not whole
//   numbers, symmetric matrices, or, of the latter, what is sorted, square, or zero in more than one place of four.
// - Flags not where the graph scatters by them.
std::vector<std::size_t> FixedInputs(const std::vector<Leaf>& one, const std::vector<Leaf>& other,
                                     const nlohmann::json& graph);

// As Transform; an expanded input stays one. Of one value: others stand at the end of rows (along the last dimension
// that has more than one place), of a random number up to a fourth of each, as in masks of sequences that are padded;
// in symmetric matrices at the end of both but on the diagonal. Zeros become ones, flags are turned over, all else
// becomes zeros. Less: three quarters of what it was, whole numbers rounded down. Of two: what a row ends with goes on
// for longer, by as many and so that it keeps one of the others; in symmetric matrices the last rows and columns get
// what stands in the corner, but on the diagonal; rows that are all ones end with zeros where no other change is to be
// had. Weights become their roots, scaled to the sums that they had; directions and rows without a mean are turned
// around, all rows alike.
Transformed MakeOthers(int form, const std::vector<std::size_t>& fixed, Random* random, std::vector<Leaf>* leaves);

}  // namespace grove::judge
