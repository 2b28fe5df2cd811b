// Elements of one input that are those of another: `>` and `>=` differ there alone, and no draw of fractions has any.
#pragma once

#include <vector>

#include "worker/judge/distributions.h"
#include "worker/judge/random.h"
#include "worker/judge/rare.h"
#include "worker/judge/reference.h"

namespace grove::judge {

// As Transform, in the form kMeeting of rare_values.h. Of each two inputs that the program compares as they are, of one
// type, that of which values mean no more than they are gets some of the other's within its own range: one element in
// sixteen, from the same place where both have one. It is asked of outputs that no rounding has a part in.
Transformed MakeMeeting(const RareValues& rare, Random* random, std::vector<Leaf>* leaves);

}  // namespace grove::judge
