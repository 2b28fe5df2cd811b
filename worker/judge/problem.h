// What the judge knows of its problem after `load`.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "worker/judge/compare.h"
#include "worker/judge/exactness.h"
#include "worker/judge/indices.h"
#include "worker/judge/manners.h"
#include "worker/judge/rare.h"
#include "worker/judge/reference.h"

namespace grove::judge {

// Of a problem of more than so many bytes not everything fits on a device at once (LoadedProblem::large). Below this,
// giving cached device memory back costs more than it is worth.
inline constexpr std::size_t kLargeBytes = std::size_t{1} << 30;

struct LoadedProblem {
  std::unique_ptr<Reference> reference;
  double reduction = 1;            // longest reduction in the graph
  std::vector<double> reductions;  // of those that lead to each output; empty where that is not known
  double ReductionOf(std::size_t output) const { return output < reductions.size() ? reductions[output] : reduction; }
  bool continuous = false;            // no thresholds, indices or poles in its graph, as far as that is known
  bool chooses = false;               // results are put in order, or chosen among others, by an operation of its graph
  bool in_double = false;             // it works in float64 throughout (in_double.h)
  bool widened = false;               // all work is in float64, and no result, of inputs of shorter types
  std::vector<bool> in_double_first;  // of each input: DoubleInputs
  std::vector<Exactness> exactness;   // of each output; empty where there is no graph
  Exactness ExactnessOf(std::size_t output) const {
    return output < exactness.size() ? exactness[output] : Exactness::kRounded;
  }
  // Of each output that is one product: the inputs by which each of its sums has one term (factors.h).
  std::vector<std::vector<std::size_t>> factors;        // of half types
  std::vector<std::vector<std::size_t>> float_factors;  // of float32
  RareValues rare;                                      // what its graph says of them; nothing where that is not known
  std::vector<std::size_t> fixed;  // inputs that are the same in every draw, and can be others (fixed_inputs.h)
  // Of each input: whole numbers that are compared with whole numbers (t == 1), which no rounding moves. Nothing where
  // that was not asked yet.
  std::optional<std::vector<bool>> still;
  // Of each input: whether it stays as it is where others are nudged. May be shorter.
  std::vector<bool> Still() const {
    std::vector<bool> stays = still.value_or(std::vector<bool>());
    if (stays.size() < in_double_first.size()) stays.resize(in_double_first.size(), false);
    for (std::size_t i = 0; i < in_double_first.size(); ++i) stays[i] = stays[i] || in_double_first[i];
    return stays;
  }
  double NudgeOf(double size) const { return in_double ? size * kFiner : size; }  // what a nudge of this size is
  bool KnowsDouble() const {  // what rounding in float32 would do says nothing of it, or of a part of it
    return in_double || std::find(in_double_first.begin(), in_double_first.end(), true) != in_double_first.end();
  }
  // `measured`, with what is known of the work in any draw.
  ReferenceNoise Noise(ReferenceNoise measured = {}) const {
    measured.in_double = in_double;
    measured.widened = widened;
    return measured;
  }
  std::vector<double> reckoned;  // of each input, as Reckoned says; empty where that is not known
  std::vector<Indices> indices;  // of each input; empty where that is not known
  // Of the tensors that get_inputs() gave when the problem was described (the first of several shape sets).
  std::vector<std::vector<std::int64_t>> input_shapes;
  std::optional<Manners> manners;  // once they are known
  double reference_seconds = 0;    // one warm eager call
  double draw_seconds = 0;         // one draw of the inputs
  double double_seconds = -1;      // one float64 evaluation; negative = not to be had
  std::size_t bytes = 0;           // of inputs, parameters and outputs together
  std::size_t large_bytes = kLargeBytes;
  bool large() const { return bytes > large_bytes; }
};

}  // namespace grove::judge
