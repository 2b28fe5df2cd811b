// Among equal keys sort, topk and their kind may choose any, and which one is no part of what the reference computes.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "worker/judge/reference.h"

namespace grove::judge {

// `got` with the reference's choice in place of each other one that is as good: where output `output` of a run of the
// reference is the places that one of these operations gave, those with the very same keys, in rows in which no place
// comes twice where the operation gives each once. Undefined where there is none of that.
at::Tensor WithEqualChoices(Reference& reference, const std::vector<Leaf>& leaves, std::size_t output,
                            const at::Tensor& got);

}  // namespace grove::judge
