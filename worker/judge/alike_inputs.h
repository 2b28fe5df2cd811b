// Inputs whose elements are all alike, and the same in every draw: a mask of ones, a state of zeros, a scale. A kernel
// may know them and never read them, so each of the first few has others in one draw of RARE, alone: changed together,
// one could hide another.
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
inline constexpr int kAlike = kRareForms, kMostAlike = 6, kAlikeForms = 2 * kMostAlike;
inline constexpr bool IsAlike(int form) { return form >= kAlike && form < kAlike + kAlikeForms; }
inline constexpr bool LessAlike(int form) { return IsAlike(form) && (form - kAlike) % 2 == 1; }
inline constexpr std::size_t WhichAlike(int form) { return static_cast<std::size_t>(form - kAlike) / 2; }

// The numbers of such inputs that can have others, by two draws and the graph (GraphOp list; what is not known of it is
// null). Not: infinities and NaN; n values of 1/n, of their logarithm, or of norm one along a dimension of n; whole
// numbers in integers other than ones (0 is an index that exists, and a length), fewer than sixteen of them, or where
// the graph has indices or divides integers.
std::vector<std::size_t> AlikeInputs(const std::vector<Leaf>& one, const std::vector<Leaf>& other,
                                     const nlohmann::json& graph);

// As Transform. Others stand at the end of rows (along the last dimension that has more than one place), of a random
// number up to a fourth of each, as in masks of sequences that are padded; in square matrices at the end of both, so
// that they stay symmetric. Zeros become ones, flags are turned over, all else becomes zeros. Less: three quarters of
// what it was, whole numbers rounded down.
Transformed MakeAlike(int form, const std::vector<std::size_t>& alike, Random* random, std::vector<Leaf>* leaves);

}  // namespace grove::judge
