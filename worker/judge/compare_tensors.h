// The comparison rule of compare.h applied to tensors, on the device where they are when they are large.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "worker/judge/compare.h"

namespace grove::judge {

struct ComparedTensors {
  at::Tensor got;  // may be undefined where only the noise of a floating-point reference is asked for
  at::Tensor reference;
  at::Tensor high;       // the reference in float64; may be undefined
  at::Tensor nudged;     // the same for nudged inputs; may be undefined; only with `high`
  double reduction = 1;  // length of the longest reduction behind the output
  ReferenceNoise noise;  // of another draw, used where `high` is undefined
  at::Tensor wide;       // as `nudged`, for inputs moved by kWideNudge; may be undefined; only with `nudged`
  double jumps = 0;      // share of elements that jump in one nudge, where larger ones counted it (JumpsBeyond)
  at::Tensor turned;     // of an exact type: whether at least one of `turns` nudges turned the element over; where
  int turns = 0;         // undefined, `nudged` is the only one
  double own_error = 0;  // of the reference, rms over these and other inputs (Expected::errors); 0 = not asked
};

// Which elements of `values`, given in a type of fractions, are `wanted` there but for `allowed` (float64, all of a
// shape). What overflows in that type is infinity, and no number is near it. NaN is like nothing.
at::Tensor Alike(const at::Tensor& values, const at::Tensor& wanted, const at::Tensor& allowed, at::ScalarType type);

// The largest number of a floating-point or complex type: what programs write where they mean infinity.
double Extreme(at::ScalarType type);

// Whether its values are steps (an exact type, or a fraction that few values occur of): an element then jumps when
// rounding takes it over a threshold, and jumps are so rare that only a larger nudge counts them.
bool Stepped(const at::Tensor& output);

// How many elements of a floating-point output moved by more than they would by going on as they did for the nudge of
// kNudge: at a threshold (x if x > 1 else 0) between values that are otherwise all different. `moved`: the same for
// inputs moved by `size`. `less`, where it is defined: the same for an eighth of it in the same directions, from where
// what has a slope goes on. Of an exact type: all that moved. So rare are they that only a nudge much larger than
// rounding counts them.
double JumpsBeyond(const at::Tensor& high, const at::Tensor& nudged, const at::Tensor& moved, double size,
                   const at::Tensor& less);

Comparison CompareTensors(const ComparedTensors& tensors, const Rule& rule);
// What is found where honest errors on these values are of this size (rms, or that of the only element), when that is
// right; else `compared`, which was found without. What it is compared by is of this draw alone, and no measure for
// others.
Comparison CompareWithErrors(ComparedTensors tensors, double size, Comparison compared, const Rule& rule);

// Neither NaN nor infinity in any of them.
bool AllFinite(const std::vector<at::Tensor>& tensors);
// Of each tensor with fractions which elements are so; undefined for others.
std::vector<at::Tensor> Finite(const std::vector<at::Tensor>& tensors);
// Whether all elements of `tensors` that are so are so in `finite`. False where there are other tensors.
bool FiniteThere(const std::vector<at::Tensor>& tensors, const std::vector<at::Tensor>& finite);

}  // namespace grove::judge
