// The comparison rule of compare.h applied to tensors, on the device where they are when they are large.
#pragma once

#include <ATen/core/Tensor.h>

#include "worker/judge/compare.h"

namespace grove::judge {

// `high` (the reference in float64) may be undefined. `reduction`: length of the longest reduction behind the output.
Comparison CompareTensors(const at::Tensor& got, const at::Tensor& reference, const at::Tensor& high, double reduction,
                          const ReferenceNoise& noise, const Rule& rule);

}  // namespace grove::judge
