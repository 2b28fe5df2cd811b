#include "worker/judge/in_double.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace grove::judge {
namespace {

using nlohmann::json;

json Type(const std::string& dtype) { return {{"dtype", dtype}, {"shape", {8}}}; }

json Operation(const std::string& kind, const std::vector<std::string>& inputs, const std::string& output,
               const std::string& dtype) {
  return {{"kind", "aten::" + kind},
          {"inputs", inputs},
          {"outputs", json::array({output})},
          {"output_types", json::array({Type(dtype)})}};
}

// What the last operation of a graph gives.
json Last(const json& graph) { return graph.empty() ? json::array() : graph.back().at("outputs"); }

// in0 is of float64, in1 of int64.
DoubleWork WorkOf(const json& graph, const std::string& parameter = "float64") {
  return DoubleWorkOf(graph, Last(graph), json::array({Type("float64"), Type("int64")}),
                      json::array({Type(parameter)}));
}
bool Of(const json& graph) { return WorkOf(graph) == DoubleWork::kThroughout; }

TEST_CASE("What is converted at the end was computed in float64", "[in_double]") {
  const json difference = Operation("sub", {"in0", "p0", "1"}, "v0", "float64");
  const json end = Operation("_to_copy", {"v0"}, "v1", "float32");
  CHECK(Of(json::array({difference})));
  CHECK(Of(json::array({difference, end})));
  CHECK(Of(json::array({difference, end, Operation("view", {"v1"}, "v2", "float32")})));
  CHECK(Of(json::array({difference, Operation("lt", {"v0", "0"}, "v1", "bool")})));
  CHECK_FALSE(Of(json::array({difference, end, Operation("mul", {"v1", "v1"}, "v2", "float32")})));
  CHECK_FALSE(Of(json::array(
      {difference, end, Operation("view", {"v1"}, "v2", "float32"), Operation("sum", {"v2"}, "v3", "float32")})));
  CHECK_FALSE(Of(json::array({Operation("arange", {"8"}, "v0", "float32")})));
  CHECK_FALSE(Of(json::array()));
  CHECK(DoubleWorkOf(json::array({Operation("add", {"in0", "in0", "1"}, "v0", "int64")}), json::array({"v0"}),
                     json::array({Type("int64")}), json::array()) == DoubleWork::kOther);
}

// in0 and in1 are of float32, p0 of bfloat16; `results`: what the last operation gives.
DoubleWork OfShort(const json& graph, const json& results = nullptr) {
  return DoubleWorkOf(graph, results.is_null() ? Last(graph) : results, json::array({Type("float32"), Type("float32")}),
                      json::array({Type("bfloat16")}));
}

TEST_CASE("What comes in in a shorter type may be widened before anything is made of it", "[in_double]") {
  const json view = Operation("view", {"in0"}, "v0", "float32"), wide = Operation("to", {"v0", "7"}, "v1", "float64");
  const json work = Operation("sub", {"v1", "v1"}, "v2", "float64"),
             end = Operation("to", {"v2", "6"}, "v3", "float32");
  const auto then = [&](const json& last, const json& results = nullptr) {
    return OfShort(json::array({view, wide, work, end, last}), results);
  };
  CHECK(OfShort(json::array({view, wide, work, end})) == DoubleWork::kWidened);
  CHECK(then(Operation("type_as", {"v2", "in0"}, "v4", "float32")) == DoubleWork::kWidened);
  CHECK(then(Operation("to", {"v3", "6"}, "v4", "float32")) == DoubleWork::kWidened);
  CHECK(then(Operation("numel", {"in0"}, "v4", "int"), json::array({"v3"})) == DoubleWork::kWidened);
  CHECK(then(Operation("stack", {"v3"}, "v4", "float32")) == DoubleWork::kWidened);
  CHECK(then(Operation("mul", {"v2", "p0"}, "v4", "float64"), json::array({"v4", "v3"})) == DoubleWork::kWidened);
  CHECK(then(Operation("gt", {"v2", "0"}, "v4", "bool"), json::array({"v4", "v3"})) == DoubleWork::kWidened);
  CHECK(then(Operation("to", {"v3", "7"}, "v4", "float64")) == DoubleWork::kWidened);  // it holds float32
  CHECK(OfShort(json::array({Operation("to", {"in0", "6"}, "v0", "float32"), wide, work, end})) ==
        DoubleWork::kWidened);
  json list = Operation("ListConstruct", {"in0", "in1"}, "v4", "Tensor[]");
  list["kind"] = "prim::ListConstruct";
  CHECK(OfShort(json::array({list, Operation("cat", {"v4"}, "v0", "float32"), wide, work, end})) ==
        DoubleWork::kWidened);
}

TEST_CASE("Nothing is made of an input by what moves its elements", "[in_double]") {
  const json wide = Operation("to", {"v0", "7"}, "v1", "float64"), end = Operation("to", {"v1", "6"}, "v2", "float32");
  for (const char* kind : {"atleast_2d", "broadcast_to", "dropout", "masked_fill", "reshape_as", "split_with_sizes",
                           "tensor_split", "tril", "unfold", "view_as"}) {
    CHECK(OfShort(json::array({Operation(kind, {"in0"}, "v0", "float32"), wide, end})) == DoubleWork::kWidened);
  }
  CHECK(OfShort(json::array({Operation("relu", {"in0"}, "v0", "float32"), wide, end})) == DoubleWork::kOther);
}

TEST_CASE("Whole numbers are widened as fractions are", "[in_double]") {
  const auto of = [](const json& graph) {
    return DoubleWorkOf(graph, Last(graph), json::array({Type("int64")}), json::array());
  };
  const json since = Operation("sub", {"in0", "3"}, "v0", "int64"),
             wide = Operation("to", {"v0", "7"}, "v1", "float64");
  const json mean = Operation("mean", {"v1"}, "v2", "float64"), end = Operation("to", {"v2", "6"}, "v3", "float32");
  CHECK(of(json::array({since, wide, mean, end})) == DoubleWork::kWidened);
  CHECK(of(json::array({since, wide, mean})) == DoubleWork::kThroughout);
  CHECK(of(json::array({since, Operation("to", {"v0", "6"}, "v1", "float32")})) == DoubleWork::kOther);
  CHECK(of(json::array({since, Operation("to", {"v0", "6"}, "v1", "float32"),
                        Operation("mean", {"v1"}, "v2", "float32")})) == DoubleWork::kOther);
}

TEST_CASE("Where it comes out as float64, all is float64's", "[in_double]") {
  const json wide = Operation("to", {"in0", "7"}, "v1", "float64");
  CHECK(OfShort(json::array({wide, Operation("mul", {"v1", "p0"}, "v2", "float64")})) == DoubleWork::kThroughout);
  // Of flags alone it is not said.
  CHECK(OfShort(json::array({wide, Operation("gt", {"v1", "0"}, "v2", "bool")})) == DoubleWork::kWidened);
  CHECK(OfShort(json::array({Operation("sum", {"in0"}, "v0", "float64")})) == DoubleWork::kThroughout);
  CHECK(WorkOf(json::array({Operation("sub", {"in0", "p0"}, "v0", "float64")}), "float32") == DoubleWork::kThroughout);
}

TEST_CASE("What is made of it as it is, or in a shorter type, is not widened", "[in_double]") {
  const json wide = Operation("to", {"in0", "7"}, "v1", "float64"),
             work = Operation("sub", {"v1", "v1"}, "v2", "float64");
  const json end = Operation("to", {"v2", "6"}, "v3", "float32");
  const auto then = [&](const json& last) { return OfShort(json::array({wide, work, end, last})); };
  CHECK(then(Operation("exp", {"in1"}, "v4", "float32")) == DoubleWork::kOther);
  CHECK(then(Operation("gt", {"in1", "0"}, "v4", "bool")) == DoubleWork::kOther);
  CHECK(then(Operation("to", {"in1", "4"}, "v4", "int64")) == DoubleWork::kOther);
  CHECK(then(Operation("to", {"in1", "5"}, "v4", "float16")) == DoubleWork::kOther);
  CHECK(then(Operation("zeros_like", {"in1"}, "v4", "float32")) == DoubleWork::kOther);
  CHECK(then(Operation("exp", {"v3"}, "v4", "float32")) == DoubleWork::kOther);
  CHECK(then(Operation("add", {"v3", "in0"}, "v4", "float32")) == DoubleWork::kOther);
  CHECK(then(Operation("mul", {"v2", "v3"}, "v4", "float64")) == DoubleWork::kOther);
  json own = Operation("", {"v2"}, "v4", "float64");
  own["kind"] = "prim::PythonOp";
  CHECK(then(own) == DoubleWork::kOther);
  CHECK(OfShort(json::array({Operation("view", {"in0"}, "v0", "float32")})) == DoubleWork::kOther);
  CHECK(OfShort(json::array()) == DoubleWork::kOther);
}

TEST_CASE("Inputs of which something is computed in float64 are known, whatever comes later", "[in_double]") {
  const auto of = [](const json& graph, const json& results = json::array({"v2"})) {
    return DoubleInputs(graph, results, json::array({Type("float64"), Type("float64"), Type("float32")}));
  };
  const json difference = Operation("sub", {"in0", "in0", "1"}, "v0", "float64");
  const json end = Operation("_to_copy", {"v0"}, "v1", "float32");
  const json work = Operation("mul", {"v1", "in2"}, "v2", "float32");
  CHECK(of(json::array({difference, end, work})) == std::vector<bool>{true, false, false});
  CHECK(of(json::array({difference, end, work}), json::array({"v2", "v0"})).empty());
  const json view = Operation("view", {"in1"}, "v3", "float64");
  CHECK(of(json::array({view, Operation("exp", {"v3"}, "v0", "float64"), end, work})) ==
        std::vector<bool>{false, true, false});
  const json first = Operation("_to_copy", {"in0"}, "v1", "float32");
  CHECK(of(json::array({first, work})) == std::vector<bool>{false, false, false});
  const json like = Operation("zeros_like", {"in0"}, "v4", "float64");
  CHECK(of(json::array({like, first, work})) == std::vector<bool>{false, false, false});
  CHECK(of(json::array({difference, end, work, Operation("floor", {"v2"}, "v5", "float32")})).empty());
  CHECK(of(json::array({difference, end, work, Operation("gt", {"v2", "0"}, "v5", "bool")})).empty());
}

}  // namespace
}  // namespace grove::judge
