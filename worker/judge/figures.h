// A few figures in one tensor (a mean error beside a sum of squares) are of a size each, so that the largest says
// nothing of the others. Of the problem's own values the small ones are judged one by one. docs/correctness.md.
#pragma once

#include <cstdint>
#include <functional>

#include "common/wire/dtype.h"
#include "worker/judge/compare_tensors.h"
#include "worker/judge/slots.h"

namespace grove::judge {

// Whether a tensor is a few figures.
bool AreFigures(const wire::DType& type, std::int64_t elements);
// Whether there are such among a slot's outputs.
bool HasFigures(const Slot& slot);

// `compared`, what was found of all of them together, unless a small one is off by itself: then what is found of that.
// `rounding`: by how much rounding inside of the program moves each (RoundingInside; undefined where that is not
// known, and then nobody is condemned); asked for where a figure is off by more than nudges show.
Comparison EachFigure(const ComparedTensors& tensors, Comparison compared, const Rule& rule,
                      const std::function<at::Tensor()>& rounding);

}  // namespace grove::judge
