// Integer inputs with which there is arithmetic alone: nothing is chosen, counted, placed, compared or measured by
// them, so that other whole numbers mean no more than those that are drawn. Pure: JSON in, no torch.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

namespace grove::judge {

// Of each of `inputs` (TensorType list) the largest size of whole numbers with which nothing in the graph that is whole
// goes beyond 2^24, where float32 holds all of them, or, where there is none, but sums in 64 bits, which stay below
// 2^31; 0 where it is no such input (int32 and int64 alone: shorter types
// hold codes). `graph`: GraphOp list. What is not known to be arithmetic is none.
std::vector<double> Reckoned(const nlohmann::json& graph, const nlohmann::json& inputs);

}  // namespace grove::judge
