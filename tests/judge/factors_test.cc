#include "worker/judge/factors.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace grove::judge {
namespace {

using nlohmann::json;
using Names = std::vector<std::string>;
using Inputs = std::vector<std::size_t>;

json Type(const std::string& dtype, const std::vector<int>& shape) { return {{"dtype", dtype}, {"shape", shape}}; }
json Half(const std::vector<int>& shape) { return Type("bfloat16", shape); }

json Operation(const std::string& kind, const Names& inputs, const std::string& output, const json& type) {
  return {{"kind", "aten::" + kind}, {"inputs", inputs}, {"outputs", {output}}, {"output_types", json::array({type})}};
}

Inputs Of(const json& graph, const std::string& output, const json& inputs, const json& parameters = json::array(),
          FactorTypes types = FactorTypes::kHalf) {
  const auto all = FactorsOf(graph, json::array({output}), inputs, parameters, types);
  REQUIRE(all.size() == 1);
  return all[0];
}

const json kTwo = json::array({Half({4, 6}), Half({6, 5})});
const json kWeights = json::array({Half({5, 6}), Half({5})});

TEST_CASE("Inputs that a product sums over their last two dimensions are its factors", "[factors]") {
  CHECK(Of(json::array({Operation("matmul", {"in0", "in1"}, "v0", Half({4, 5}))}), "v0", kTwo) == Inputs{0, 1});
  CHECK(Of(json::array({Operation("linear", {"in0", "p0", "p1"}, "v0", Half({4, 5}))}), "v0", kTwo, kWeights) ==
        Inputs{0});
  CHECK(Of(json::array({Operation("addmm", {"p1", "in0", "in1", "1", "1"}, "v0", Half({4, 5}))}), "v0", kTwo,
           kWeights) == Inputs{0, 1});
  CHECK(Of(json::array({Operation("mv", {"in0", "in1"}, "v0", Half({4}))}), "v0",
           json::array({Half({4, 6}), Half({6})})) == Inputs{0, 1});
}

TEST_CASE("A factor may be turned, and its rows be put in another order", "[factors]") {
  const json turned = Operation("t", {"in1"}, "v0", Half({5, 6}));
  CHECK(Of(json::array({turned, Operation("linear", {"in0", "v0", "null"}, "v1", Half({4, 5}))}), "v1", kTwo) ==
        Inputs{0, 1});
  const json rows = Operation("view", {"in0", "[8,6]"}, "v0", Half({8, 6}));
  const json three = json::array({Half({2, 4, 6})});
  CHECK(Of(json::array({rows, Operation("linear", {"v0", "p0", "p1"}, "v1", Half({8, 5}))}), "v1", three, kWeights) ==
        Inputs{0});
  // What was several rows is one: its sums have several terms.
  const json flat = Operation("flatten", {"in0", "1", "-1"}, "v0", Half({2, 24}));
  CHECK(Of(json::array({flat, Operation("linear", {"v0", "p0", "null"}, "v1", Half({2, 5}))}), "v1", three,
           json::array({Half({5, 24})}))
            .empty());
  // Over a dimension beside the last two.
  const json first = Operation("permute", {"in0", "[1,2,0]"}, "v0", Half({4, 6, 2}));
  CHECK(Of(json::array({first, Operation("matmul", {"v0", "p0"}, "v1", Half({4, 6, 5}))}), "v1", three,
           json::array({Half({2, 5})}))
            .empty());
  const json last = Operation("transpose", {"in0", "1", "-1"}, "v0", Half({2, 6, 4}));
  CHECK(Of(json::array({last, Operation("matmul", {"v0", "p0"}, "v1", Half({2, 6, 5}))}), "v1", three,
           json::array({Half({4, 5})})) == Inputs{0});
}

TEST_CASE("Elements of a product may be selected, and nothing is to be done with them", "[factors]") {
  const json product = Operation("matmul", {"in0", "in1"}, "v0", Half({4, 5}));
  CHECK(Of(json::array({product, Operation("relu", {"v0"}, "v1", Half({4, 5}))}), "v1", kTwo) == Inputs{0, 1});
  CHECK(Of(json::array({product, Operation("gelu", {"v0"}, "v1", Half({4, 5}))}), "v1", kTwo).empty());
  CHECK(Of(json::array({product, Operation("add", {"v0", "p1", "1"}, "v1", Half({4, 5}))}), "v1", kTwo, kWeights)
            .empty());
  CHECK(Of(json::array({product, Operation("relu_", {"v0"}, "v1", Half({4, 5}))}), "v1", kTwo).empty());
  CHECK(
      Of(json::array({product, Operation("matmul", {"v0", "p0"}, "v1", Half({4, 6}))}), "v1", kTwo, kWeights).empty());
  CHECK(Of(json::array({Operation("mul", {"in0", "0.3"}, "v0", Half({4, 6})),
                        Operation("matmul", {"v0", "in1"}, "v1", Half({4, 5}))}),
           "v1", kTwo)
            .empty());
  // A number that a half type does not hold may be rounded to it.
  const auto added = [](const std::string& by) {
    return json::array({Operation("addmm", {"p1", "in0", "in1", "1", by}, "v0", Half({4, 5}))});
  };
  CHECK(Of(added("0.3"), "v0", kTwo, kWeights).empty());
  CHECK(Of(added("-0.5"), "v0", kTwo, kWeights) == Inputs{0, 1});
  CHECK(Of(json::array({Operation("conv1d", {"in0", "p0"}, "v0", Half({4, 5}))}), "v0", kTwo, kWeights).empty());
}

TEST_CASE("Of products that are put side by side only what all of them have is a factor", "[factors]") {
  const json inputs = json::array({Half({4, 6}), Half({6, 5}), Half({6, 5})});
  json both = Operation("cat", {"v2", "1"}, "v3", Half({4, 10}));
  json list{{"kind", "prim::ListConstruct"}, {"inputs", {"v0", "v1"}}, {"outputs", {"v2"}}, {"output_types", {{}}}};
  CHECK(Of(json::array({Operation("matmul", {"in0", "in1"}, "v0", Half({4, 5})),
                        Operation("matmul", {"in0", "in2"}, "v1", Half({4, 5})), list, both}),
           "v3", inputs) == Inputs{0});
}

TEST_CASE("Those of float32 are asked for by themselves", "[factors]") {
  const json single = json::array({Type("float32", {4, 6}), Type("float32", {6, 5})});
  const auto of = [](const json& graph, const json& inputs) {
    return Of(graph, "v9", inputs, json::array(), FactorTypes::kFloat32);
  };
  const json product = Operation("matmul", {"in0", "in1"}, "v9", Type("float32", {4, 5}));
  CHECK(of(json::array({product}), single) == Inputs{0, 1});
  CHECK(of(json::array({product}), json::array({Half({4, 6}), Type("float32", {6, 5})})) == Inputs{1});
  CHECK(of(json::array({Operation("matmul", {"in0", "in1"}, "v9", Half({4, 5}))}), kTwo).empty());
  // Who names a half type has it.
  CHECK(of(json::array({Operation("to", {"in0", "15"}, "v0", Half({4, 6})),
                        Operation("to", {"v0", "6"}, "v1", Type("float32", {4, 6})),
                        Operation("matmul", {"v1", "in1"}, "v9", Type("float32", {4, 5}))}),
           single)
            .empty());
}

TEST_CASE("Only half types have factors, and what is narrowed on the way has none", "[factors]") {
  const json single = json::array({Type("float32", {4, 6}), Type("float32", {6, 5})});
  CHECK(Of(json::array({Operation("matmul", {"in0", "in1"}, "v0", Type("float32", {4, 5}))}), "v0", single).empty());
  const json wide = json::array({Operation("to", {"in0", "6"}, "v0", Type("float32", {4, 6})),
                                 Operation("to", {"in1", "6"}, "v1", Type("float32", {6, 5})),
                                 Operation("matmul", {"v0", "v1"}, "v2", Type("float32", {4, 5})),
                                 Operation("to", {"v2", "15"}, "v3", Half({4, 5}))});
  CHECK(Of(wide, "v3", kTwo) == Inputs{0, 1});
  CHECK(Of(wide, "v2", kTwo).empty());
  const json narrowed = json::array(
      {Operation("to", {"p0", "15"}, "v0", Half({6, 5})), Operation("matmul", {"in0", "v0"}, "v1", Half({4, 5}))});
  CHECK(Of(narrowed, "v1", kTwo, json::array({Type("float32", {6, 5})})).empty());
}

}  // namespace
}  // namespace grove::judge
