// The reference's graph: straight-line operations with the shapes that the problem's inputs give.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "worker/judge/reference.h"

namespace grove::judge {

struct TraceResult {
  nlohmann::json graph = nlohmann::json::array();    // GraphOp list; empty with an error
  nlohmann::json outputs = nlohmann::json::array();  // value names
  std::string error;                                 // why there is no graph
  double reduction = 1;                              // longest reduction of any operation, for the comparison rule
  std::vector<double> reductions;                    // of those that lead to each output; empty = not known apart
  // The graph does not show all that leads to the outputs: operations in place, branches and loops, or torch warned
  // that values leave it (item()), or of something else.
  bool partial = false;
  bool left = false;  // for another reason than operations in place
};

// Never throws: a reference that cannot be traced is still judged.
TraceResult Trace(Reference& reference, const std::vector<Leaf>& leaves);

}  // namespace grove::judge
