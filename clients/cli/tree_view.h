// A job's tree as text and as Graphviz. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "clients/cli/text.h"
#include "grove/v1/services.pb.h"
#include "grove/v1/tree.pb.h"

namespace grove::cli {

struct TreeOptions {
  Style style;
  size_t width = 0;  // cut lines there; 0 = never
  std::string best;  // id of the node to mark; empty = none
};

// One line per node below its parent: kernels under their idea, ideas under the kernel that they start from, repairs
// under what they repair. A node whose parent is not among `nodes` stands at the top. Any depth, and no loop, hangs it.
std::string RenderTree(absl::Span<const v1::TreeNode> nodes, const TreeOptions& options);

std::string RenderDot(const std::string& title, absl::Span<const v1::TreeNode> nodes, const std::string& best);

// A kernel's outcome in a few words: "CORRECT 3.42x [3.31, 3.55]", "WRONG 12 of 64 elements differ".
std::string KernelOutcome(const v1::KernelNode& kernel, const Style& style);

}  // namespace grove::cli
