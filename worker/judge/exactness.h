// Whether arithmetic has a part in an output: what is compared, selected and counted of untouched inputs is right or
// wrong, and no rounding excuses another value. Pure: JSON in, no torch.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace grove::judge {

enum class Exactness {
  kExact,    // comparisons, selections and whole numbers of the inputs as they are
  kChosen,   // the same, but for positions among equal keys (argmax, sort), of which any may be right. Not where the
             // keys are whole numbers, or results of comparisons, which no nudge of the inputs parts: there the first
             // (argmax, argmin, max, min: as torch documents it) is right, and other choices are kRounded
  kRounded,  // arithmetic with fractions, or an operation that is not known
};

// Whether a known operation of torch's (its name without the namespace) gives elements of its operands, chooses among
// them or says how they compare.
bool Selects(const std::string& name);

// Of each of `outputs` (names of values). `graph`: GraphOp list; `inputs`, `parameters`: TensorType lists, whose values
// are named in0, in1, ... and p0, p1, ... All kRounded where an operation works in place.
std::vector<Exactness> ExactnessOf(const nlohmann::json& graph, const nlohmann::json& outputs,
                                   const nlohmann::json& inputs, const nlohmann::json& parameters);

}  // namespace grove::judge
