// Values for which a program has a bound, an epsilon or a place, and which no draw is likely to have.
#pragma once

#include <vector>

#include "worker/judge/distributions.h"
#include "worker/judge/random.h"
#include "worker/judge/rare.h"
#include "worker/judge/reference.h"

namespace grove::judge {

// Forms of RARE. (Far below and above: who takes a largest or least element from some number on that is no infinity.
// Meeting: meeting.h.)
inline constexpr int kZeroRows = 0, kBeyondBounds = 1, kNotNumbers = 2, kEmptyMasks = 3, kFarBelow = 4, kFarAbove = 5,
                     kMeeting = 6, kRareForms = 7;
inline constexpr double kFar = 0x1p17;  // beyond what is taken for no number: 10,000, 65,504
inline constexpr bool IsFar(int form) { return form == kFarBelow || form == kFarAbove; }
// Of these all that is asked is whether there are numbers where the reference has them.
inline constexpr bool NumbersAlone(int form) { return form == kZeroRows || form == kEmptyMasks; }

// Whether the program has anything to say of values of this form.
bool Says(const RareValues& rare, int form);

// As Transform. Zeros are rows in every direction: one place of each dimension, all along the others. So are those of
// masks (of zeros and ones, of whatever type), which stay as they are otherwise. Beyond bounds is
// one element in sixteen, by a factor of 1.4 to 16; NaN, and infinities where they are treated, one in sixty-four.
// Far below zero, and far above, is every element of an input of both signs, by some 10^5 and unlike others still.
Transformed MakeRare(int form, const RareValues& rare, Random* random, std::vector<Leaf>* leaves);

}  // namespace grove::judge
