// Indices and labels of few of their own values, so that what seldom comes by chance does: neighbours that are equal,
// places that nobody names, the first and the last, what a loss leaves out.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "worker/judge/distributions.h"
#include "worker/judge/labels.h"
#include "worker/judge/random.h"
#include "worker/judge/reference.h"

namespace grove::judge {

// The form of INTEGERS behind those of other_integers.h, and how many it has.
inline constexpr int kOfFew = 2, kIntegerForms = 3;

// As Transform, for inputs of int32 and int64. Along its longest dimension (eight places or more) an input's elements
// get one of four values that stand there: the least, the largest, those of two random places; what `labels` names
// comes in where it can be an index. `draw`: another draw of the same problem; `others`: inputs that have other values
// in other forms (Reckoned's), and none here.
//
// Left as drawn, because others would mean something else: what is the same in both draws, or adds up to the same; what
// rises or falls; what has no value twice along that dimension, in up to 64 draws (0.2 s); and what stands in a
// relation that its values would not have if they were shuffled along the longest dimension: to its place (a parent
// comes before its child), to its neighbours in a short dimension (from, to), to another input of whole numbers (first
// and last, a place and a length).
Transformed MakeFewIntegers(const Labels& labels, const std::function<std::vector<Leaf>()>& draw,
                            const std::vector<double>& others, Random* random, std::vector<Leaf>* leaves);

}  // namespace grove::judge
