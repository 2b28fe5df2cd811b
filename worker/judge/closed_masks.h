// Masks that programs write as a large number where they mean infinity: -10000 added to the scores of padding, or put
// in their place. Among scores of the problem's own size such a score weighs nothing, and kernels skip it; among those
// of another distribution, which may be larger than that number, the program itself attends to what it masks.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "worker/judge/reference.h"

namespace grove::judge {

// The outputs in float64 with such numbers in infinity's place: of what operations that mask give, and of inputs that
// are nothing but such a number and zeros. Empty where there are none. The shape set of the draw is selected.
std::vector<at::Tensor> WithClosedMasks(Reference& reference, const std::vector<Leaf>& leaves);

}  // namespace grove::judge
