// Indices and labels of few of their own values, so that what seldom comes by chance does: neighbours that are equal,
// places that nobody names, the first and the last, what a loss leaves out.
#pragma once

#include <functional>
#include <vector>

#include "worker/judge/distributions.h"
#include "worker/judge/indices.h"
#include "worker/judge/random.h"
#include "worker/judge/reference.h"

namespace grove::judge {

// The forms of INTEGERS behind those of other_integers.h, and how many there are. Both are drawn in the same way (of
// one figure, a mean of losses, what is wrong in one draw may be within the limits by chance), but that of indices at
// which something is added or counted most are one and the same in the second.
inline constexpr int kOfFew = 2, kOfFewAgain = 3, kIntegerForms = 4;
constexpr bool IsOfFew(int form) { return form == kOfFew || form == kOfFewAgain; }

// As Transform, for inputs that are nothing but indices or labels. Along its longest dimension (eight places or more)
// an input's elements get one of four values that stand there: the least, the largest, those of two random places; and
// what the program names. `draw`: another draw of the same problem. `crowded`: how many terms may meet in one sum then;
// 1 or more.
//
// Left as drawn is what is not as chance would have it (by_chance.h).
Transformed MakeFewIntegers(int form, const std::vector<Indices>& indices,
                            const std::function<std::vector<Leaf>()>& draw, Random* random, std::vector<Leaf>* leaves,
                            double* crowded);

}  // namespace grove::judge
