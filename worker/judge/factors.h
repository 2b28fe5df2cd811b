// Which outputs are one product and no more, and by which inputs each of its sums has one term alone: an honest program
// then has nothing to add up, in whatever order and precision it adds. Pure: JSON in, no torch.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <vector>

namespace grove::judge {

// Of each of `outputs` (names of values) that is a product (matmul, linear, addmm, ...) of inputs and parameters as
// they are, of which elements may be selected afterwards: the inputs that are a factor of it, and that are summed over
// their last dimension or the one before. Inputs and outputs of these types only; empty for all others. `graph`:
// GraphOp list; `inputs`, `parameters`: TensorType lists, whose values are named in0, in1, ... and p0, p1, ...
enum class FactorTypes { kHalf, kFloat32 };
std::vector<std::vector<std::size_t>> FactorsOf(const nlohmann::json& graph, const nlohmann::json& outputs,
                                                const nlohmann::json& inputs, const nlohmann::json& parameters,
                                                FactorTypes types);

}  // namespace grove::judge
