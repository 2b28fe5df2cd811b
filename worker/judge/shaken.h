// What rounding inside of a program can make of an output: whole numbers (bytes, counts, labels) are moved by no nudge
// of the inputs, and yet 0.3 a + 0.7 b of them lies now on this side of a half and now on the other.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "worker/judge/choices.h"
#include "worker/judge/random.h"
#include "worker/judge/reference.h"
#include "worker/judge/turns.h"

namespace grove::judge {

// Whether it is a tensor of whole numbers, of whatever type.
bool IsWhole(const Leaf& leaf);
// Whether there are whole numbers among the inputs' tensors.
bool HasWholeNumbers(const std::vector<Leaf>& leaves);

// Which elements of output `output` come out as `got` has them (fractions: within `allowed` of each) in one of several
// evaluations in float64 in which what arithmetic gives is moved by as much as float32 may be off. What float32 holds
// exactly, and makes of what it holds exactly, is not moved. Undefined where so many elements move that rounding
// decides the output. `high`: the evaluation as it is, made here where undefined; `reduction`: the longest;
// `in_double`: kFiner of what float32 may be off. `turns`: how many there may be, of `each` seconds.
Reached ReachedByRounding(Reference& reference, const std::vector<Leaf>& leaves, std::size_t output,
                          const at::Tensor& got, const at::Tensor& high, const at::Tensor& allowed, double reduction,
                          bool in_double, Random* random, Turns* turns, double each);

inline constexpr std::size_t kLeastRunsInside = 4;  // of RoundingInside; with fewer nothing is known

// By how much rounding of float32 in each operation moves each element of output `output` on these values (the third
// largest of eight evaluations, or the like of fewer): what no nudge of the inputs shows where these are zeros, or
// cancel before anything is rounded. Undefined where that is not known. `high`: its values in float64; `any_order`: as
// of a Rule. `turns`, `each`, `reduction`: as above.
at::Tensor RoundingInside(Reference& reference, const std::vector<Leaf>& leaves, std::size_t output,
                          const at::Tensor& high, double reduction, bool any_order, Random* random, Turns* turns,
                          double each);

}  // namespace grove::judge
