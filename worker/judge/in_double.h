// Whether a graph works in float64, whatever the type of what it gives: times, coordinates and sums that
// float32 does not hold, of which differences are handed on in a shorter type. Pure: JSON in, no torch.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

namespace grove::judge {

enum class DoubleWork {
  kOther,
  kThroughout,  // and fractions come in as float64 alone, or come out so (complex128 among them; one at least)
  kWidened,     // they come in in a shorter type, or none comes in, and some come out so, or none comes out
};

// `graph`: GraphOp list, of a program without branches whose values do not leave it; `results`: names of values;
// `inputs`, `parameters`: TensorType lists. kOther, too, where something of a shorter type is made otherwise than by
// conversion, or not handed on as it is, and of an empty graph.
DoubleWork DoubleWorkOf(const nlohmann::json& graph, const nlohmann::json& results, const nlohmann::json& inputs,
                        const nlohmann::json& parameters);

// Of each input of a program that is not kThroughout: whether it is of float64 and something is computed of it, as it
// is, in float64. What float32 would make of it is then no rounding that an honest program does. Empty where a result
// is of float64, and where an operation gives what is whole, or jumps.
std::vector<bool> DoubleInputs(const nlohmann::json& graph, const nlohmann::json& results,
                               const nlohmann::json& inputs);

}  // namespace grove::judge
