// What a graph says of whole numbers that are indices or labels. Pure: JSON in, no torch.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

namespace grove::judge {

struct Labels {
  // Of indices that are drawn, any may come twice: nothing is written to places that they name, where it would be open
  // which of two values stays. False where there is no graph.
  bool may_repeat = false;
  struct Named {
    double value;
    bool alone;  // nothing is done with the input but what knows this value: it need be no index that exists
  };
  bool any = false;  // of the inputs are of int32 or int64
  // Of each input: whole numbers that it is compared with (==, !=), the label that a loss leaves out (but for -100,
  // torch's default, which says nothing), the index that an embedding bag leaves out.
  std::vector<std::vector<Named>> named;
};

// `graph`: GraphOp list; `inputs`: TensorType list.
Labels LabelsOf(const nlohmann::json& graph, const nlohmann::json& inputs);

}  // namespace grove::judge
