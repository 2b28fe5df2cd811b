#include "clients/cli/tree_view.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"
#include "tests/cli/samples.h"

namespace grove::cli {
namespace {

std::vector<v1::TreeNode> SmallTree() {
  std::vector<v1::TreeNode> nodes = {
      Idea("j/i1", "", "Fuse the passes"),
      Idea("j/i2", "", "Vectorise"),
      Kernel("j/k1", "j/i1", CorrectResult(2, 1.9, 2.1)),
      Kernel("j/k2", "j/i1", WrongResult()),
      Kernel("j/k3", "j/i2", BuildFailedResult(1)),
      Idea("j/i3", "j/k1", "Block the loops"),
      Kernel("j/k5", "j/i3", v1::EvaluationResult()),
      Kernel("j/k4", "j/i2", CorrectResult(3.5, 3.4, 3.6)),
  };
  nodes[2].mutable_kernel()->set_survivor(true);
  nodes[7].mutable_kernel()->set_repaired_from("j/k3");
  nodes[7].mutable_kernel()->set_repair_of_attempt(1);
  nodes[1].mutable_idea()->set_category("memory");
  return nodes;
}

TEST_CASE("A tree shows ideas, kernels and repairs below what they come from", "[cli]") {
  TreeOptions options;
  options.style.unicode = true;
  options.best = "j/k4";
  CHECK(RenderTree(SmallTree(), options) ==
        "├─ i1 Fuse the passes\n"
        "│  ├─ k1  CORRECT 2x [1.9, 2.1]  kept\n"
        "│  │  └─ i3 Block the loops\n"
        "│  │     └─ k5  waiting\n"
        "│  └─ k2  WRONG 12 of 64 elements differ\n"
        "└─ i2 Vectorise (memory)\n"
        "   └─ k3  BUILD_FAILED the compiler refused it\n"
        "      └─ k4 (repair 1)  CORRECT 3.5x [3.4, 3.6]  best\n");
}

TEST_CASE("Without UTF-8 the tree is ASCII, and lines are cut at the width", "[cli]") {
  TreeOptions options;
  options.width = 24;
  CHECK(RenderTree(SmallTree(), options) ==
        "|- i1 Fuse the passes\n"
        "|  |- k1  CORRECT 2x ...\n"
        "|  |  `- i3 Block the...\n"
        "|  |     `- k5  waiting\n"
        "|  `- k2  WRONG 12 of...\n"
        "`- i2 Vectorise (memory)\n"
        "   `- k3  BUILD_FAILE...\n"
        "      `- k4 (repair 1...\n");
}

TEST_CASE("A node whose parent is unknown stands at the top, and a loop of parents is still shown once", "[cli]") {
  const std::vector<v1::TreeNode> orphan = {Idea("j/i1", "j/k99", "Orphan")};
  CHECK(RenderTree(orphan, {}) == "`- i1 Orphan\n");
  const std::vector<v1::TreeNode> loop = {Idea("j/i1", "j/k1", "A"), Kernel("j/k1", "j/i1", {})};
  CHECK(RenderTree(loop, {}) == "`- i1 A\n   `- k1  waiting\n");
  CHECK(RenderTree({}, {}).empty());
}

TEST_CASE("A chain of ten thousand ideas renders without recursion", "[cli]") {
  std::vector<v1::TreeNode> nodes;
  for (int i = 0; i < 10'000; ++i) {
    nodes.push_back(Idea(absl::StrCat("j/i", i), i == 0 ? "" : absl::StrCat("j/i", i - 1), "x"));
  }
  TreeOptions options;
  options.width = 40;
  const std::string text = RenderTree(nodes, options);
  CHECK(std::count(text.begin(), text.end(), '\n') == 10'000);
}

TEST_CASE("Graphviz text quotes what titles contain", "[cli]") {
  const std::vector<v1::TreeNode> nodes = {Idea("j/i1", "", "say \"hi\"\\\n"), Kernel("j/k1", "j/i1", WrongResult())};
  CHECK(RenderDot("t", nodes, "j/k1") ==
        "digraph grove {\n"
        "  rankdir=LR;\n"
        "  label=\"t\";\n"
        "  node [fontname=\"sans-serif\"];\n"
        "  reference [shape=doublecircle];\n"
        "  \"j/i1\" [shape=note, label=\"i1 say \\\"hi\\\"\\\\\"];\n"
        "  reference -> \"j/i1\";\n"
        "  \"j/k1\" [shape=box, style=filled, fillcolor=mistyrose, penwidth=3, label=\"k1 WRONG 12 of 64 elements "
        "differ\"];\n"
        "  \"j/i1\" -> \"j/k1\";\n"
        "}\n");
}

}  // namespace
}  // namespace grove::cli
