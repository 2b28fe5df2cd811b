// Values of which a product has one term in each of its sums: nothing is added up, so that what it is off by is what
// its factors are, and not an order or a precision of adding (factors.h).
#pragma once

#include <cstddef>
#include <vector>

#include "worker/judge/distributions.h"
#include "worker/judge/random.h"
#include "worker/judge/reference.h"

namespace grove::judge {

// Of the leaf `input` at most one element of each row and each column (of the last two dimensions) stays, times a power
// of two near the root of `reduction`, so that products are about as large as sums of the given values; the others
// become zero. Not where values mean more than their size (distributions.h), where another leaf has the same, or where
// the type does not hold them.
Transformed KeepOneTerm(std::size_t input, double reduction, Random* random, std::vector<Leaf>* leaves);

}  // namespace grove::judge
