// The comparison rule of compare.h applied to tensors, on the device where they are when they are large.
#pragma once

#include <ATen/core/Tensor.h>

#include "worker/judge/compare.h"

namespace grove::judge {

struct ComparedTensors {
  at::Tensor got;  // may be undefined where only the noise of a floating-point reference is asked for
  at::Tensor reference;
  at::Tensor high;       // the reference in float64; may be undefined
  at::Tensor nudged;     // the same for nudged inputs; may be undefined; only with `high`
  double reduction = 1;  // length of the longest reduction behind the output
  ReferenceNoise noise;  // of another draw, used where `high` is undefined
};
Comparison CompareTensors(const ComparedTensors& tensors, const Rule& rule);

}  // namespace grove::judge
