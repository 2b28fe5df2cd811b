// Whether a graph can jump: thresholds, indices, roundings and poles make a small change of the inputs a large one of
// the result. Pure: JSON in, no torch.
#pragma once

#include <nlohmann/json.hpp>

namespace grove::judge {

// True where every operation (GraphOp: `kind`, `output_types`) is known to be continuous and gives floating-point
// values. False for what is not known, and for an empty graph.
bool Continuous(const nlohmann::json& graph);

// Whether an operation of it chooses among its inputs' elements or puts them in order (max, topk, sort, max_pool2d): of
// values that have been seen, each changed by a little, one knows where to look.
bool Chooses(const nlohmann::json& graph);

}  // namespace grove::judge
