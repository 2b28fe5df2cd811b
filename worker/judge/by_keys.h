// Positions that are chosen by computed keys (an argmin of distances, the argmax of a running sum), judged by the keys
// that stand there: rounding decides which of two near ones is the larger, and nobody can say which; what the chosen
// one is, is as certain as any other output. docs/correctness-distributions.md: "By their keys".
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "worker/judge/compare.h"
#include "worker/judge/problem.h"
#include "worker/judge/random.h"
#include "worker/judge/reference.h"

namespace grove::judge {

// Of each output of a run on these values, where it is such positions: the rms of the keys that stand there. Nothing of
// others. Throws as the reference does.
std::vector<std::optional<double>> KeySizes(Reference& reference, const std::vector<Leaf>& leaves);

// Whether the positions `got` are those of keys that are, in float64, the reference's to within `rule`: as an output of
// these keys would be judged, by the responses of all keys to moved inputs. Of keys that no arithmetic has made
// (Exactness::kChosen): the very same. Nothing where the output is no such positions, or there is no time or no memory
// for it. The shape set is selected.
std::optional<Comparison> CompareByKeys(LoadedProblem& problem, const std::vector<Leaf>& leaves, std::size_t output,
                                        const at::Tensor& got, const Rule& rule, Random* secret);

// Which of the positions `got` are right on the problem's own values, each by itself: the key that stands there is the
// reference's to within what the work rounds of these two. Equal keys are no reason to take another one where the
// operation gives the first, or their order. Undefined where CompareByKeys gives nothing, and of Exactness::kChosen.
at::Tensor RightByKeys(LoadedProblem& problem, const std::vector<Leaf>& leaves, std::size_t output,
                       const at::Tensor& got, const Rule& rule, Random* secret);

}  // namespace grove::judge
