// Numbers that an output holds where there is nothing: -1e8 in the scores of what has been visited. Beside them the
// other elements are nothing to a rule that goes by the output's own size, so they are judged by themselves. On the
// problem's own values; docs/correctness-distributions.md ("Beside fills").
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "worker/judge/compare_tensors.h"

namespace grove::judge {

// Which elements are such, of an output in float64; undefined where there are none, or nothing else.
at::Tensor Fills(const at::Tensor& high);
// Whether one of these outputs has some.
bool HasFills(const std::vector<at::Tensor>& high);

// `compared`, what was found of all elements together, unless those beside the fills are wrong: then what is found of
// these. `rounding`: as of EachFigure (figures.h). `continuous`: LoadedProblem's; where it is not, a few elements may
// be beyond thresholds.
Comparison BesideFills(const ComparedTensors& tensors, bool continuous, Comparison compared, const Rule& rule,
                       const std::function<at::Tensor()>& rounding);

}  // namespace grove::judge
