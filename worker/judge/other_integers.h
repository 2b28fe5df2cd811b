// Other whole numbers than a problem draws, for integer inputs with which there is arithmetic alone (reckoned.h).
#pragma once

#include <vector>

#include "worker/judge/distributions.h"
#include "worker/judge/random.h"
#include "worker/judge/reference.h"

namespace grove::judge {

// As Transform, in two forms. `most`: of each leaf, as Reckoned says. First all elements: a quarter of the elements become negative; half go up to what
// the draw has, half as far as `most`. `again`: another draw of the same problem. What may mean more stays: few values,
// the same in both draws, sorted, places of a row, codes that fill a byte; zeros that are many stay zero. Then three of each
// input, in secret places, which get the values of others.
Transformed MakeIntegers(int form, const std::vector<double>& most, const std::vector<Leaf>& again, Random* random,
                         std::vector<Leaf>* leaves);

}  // namespace grove::judge
