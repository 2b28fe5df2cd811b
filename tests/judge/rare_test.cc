#include "worker/judge/rare.h"

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

namespace grove::judge {
namespace {

using nlohmann::json;
using Names = std::vector<std::string>;

json Operation(const std::string& kind, const Names& inputs, const Names& outputs = {"v0"}) {
  return {{"kind", "aten::" + kind},
          {"inputs", inputs},
          {"outputs", outputs},
          {"output_types", json::array({{{"dtype", "float32"}}})}};
}

RareValues Of(const json& graph) {
  return RareValuesOf(graph, json::array({{{"dtype", "float32"}}, {{"dtype", "int64"}}}));
}

TEST_CASE("Bounds are those of inputs as they are", "[rare]") {
  const auto bounds = [](const json& graph) { return Of(graph).inputs.at(0).bounds; };
  CHECK(bounds(json::array({Operation("clamp", {"in0", "-100000.0", "2.5"})})) == std::vector<double>{-1e5, 2.5});
  CHECK(bounds(json::array({Operation("view", {"in0", "[8]"}), Operation("nan_to_num", {"v0", "0.5"}, {"v1"}),
                            Operation("clamp_min", {"v1", "1e-07"}, {"v2"})})) == std::vector<double>{1e-7});
  CHECK(bounds(json::array({Operation("gt", {"in0", "20"})})) == std::vector<double>{20});
  CHECK(bounds(json::array({Operation("threshold", {"in0", "3.0", "7.0"})})) == std::vector<double>{3});
  CHECK(bounds(json::array({Operation("clamp", {"in0", "0.0", "null"})})).empty());
  CHECK(bounds(json::array({Operation("exp", {"in0"}), Operation("clamp_max", {"v0", "9.0"}, {"v1"})})).empty());
  CHECK(bounds(json::array({Operation("clamp", {"in1", "0", "9"})})).empty());
  CHECK(Of(json::array({Operation("add_", {"in0", "1"}), Operation("clamp_max", {"in0", "9.0"})})).inputs.empty());
}

TEST_CASE("What is changed in a copy is no input from there on, and inputs still are", "[rare]") {
  const auto bounds = [](const json& graph) {
    const RareValues rare = Of(graph);
    return rare.inputs.empty() ? std::vector<double>{-1} : rare.inputs[0].bounds;
  };
  const json copy = Operation("clone", {"in0"}, {"v0"}), view = Operation("select", {"v0", "0", "1"}, {"v1"}),
             add = Operation("add_", {"v0", "in1"}, {"v4"});
  // Behind the change neither the copy, nor a view of it from before, nor the result is the input.
  for (const char* name : {"v0", "v1", "v4"}) {
    CAPTURE(name);
    CHECK(bounds(json::array({copy, view, add, Operation("gt", {name, "7.0"}, {"v5"})})).empty());
  }
  CHECK(
      bounds(json::array({copy, view, Operation("fill_", {"v1", "0"}, {"v4"}), Operation("gt", {"v0", "7.0"}, {"v5"})}))
          .empty());
  CHECK(bounds(json::array({copy, add, Operation("gt", {"in0", "7.0"}, {"v5"})})) == std::vector<double>{7});
  // What may be the input itself: a view of it, or what somebody has made of it.
  for (const char* kind : {"view", "diagonal"}) {
    CAPTURE(kind);
    CHECK(bounds(json::array({Operation(kind, {"in0"}, {"v0"}), add, Operation("gt", {"in0", "7.0"}, {"v5"})})) ==
          std::vector<double>{-1});
  }
}

TEST_CASE("What mends some elements in place is read as what does in a copy", "[rare]") {
  const json copy = Operation("clone", {"in0"}, {"v0"}), nan = Operation("isnan", {"v0"}, {"v1"}),
             first = Operation("ListConstruct", {"v1"}, {"v2"}),
             put = Operation("index_put_", {"v0", "v2", "0.0", "false"}, {"v3"});
  for (const char* name : {"v0", "v3"}) {
    CAPTURE(name);
    const RareValues rare = Of(json::array({copy, nan, first, put, Operation("gt", {name, "50000.0"}, {"v4"})}));
    REQUIRE(rare.inputs.size() == 2);
    CHECK(rare.inputs[0].nan);
    CHECK(rare.inputs[0].bounds == std::vector<double>{50000});
  }
  const RareValues clamped = Of(json::array(
      {copy, Operation("clamp_", {"v0", "-3.0", "3.0"}, {"v4"}), Operation("nan_to_num_", {"v4", "0.5"}, {"v5"})}));
  REQUIRE(clamped.inputs.size() == 2);
  CHECK(clamped.inputs[0].bounds == std::vector<double>{-3, 3});
  CHECK(clamped.inputs[0].nan);
}

TEST_CASE("Largest and least elements are those of inputs as they are", "[rare]") {
  const auto of = [](const json& graph) { return Of(graph).inputs.at(0); };
  const json most = json::array({Operation("view", {"in0", "[8]"}), Operation("amax", {"v0", "[0]"}, {"v1"})});
  CHECK((of(most).largest && !of(most).least));
  CHECK((Of(most).Largest() && !Of(most).Least()));
  const json both = json::array({Operation("sort", {"in0", "-1"})});
  CHECK((of(both).largest && of(both).least));
  CHECK(!Of(json::array({Operation("abs", {"in0"}), Operation("amax", {"v0", "[0]"}, {"v1"})})).Largest());
  CHECK(!Of(json::array({Operation("amax", {"in1", "[0]"})})).Largest());
}

TEST_CASE("Inputs that are compared with each other are so as they are", "[rare]") {
  using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;
  const auto compared = [](const json& graph) {
    return RareValuesOf(graph, json::array({{{"dtype", "float32"}}, {{"dtype", "float32"}}})).compared;
  };
  CHECK(compared(json::array({Operation("gt", {"in0", "in1"})})) == Pairs{{0, 1}, {1, 0}});
  CHECK(compared(json::array({Operation("bucketize", {"in0", "in1", "false", "true"})})) == Pairs{{0, 1}});
  CHECK(compared(json::array({Operation("searchsorted", {"in0", "in1", "false"})})) == Pairs{{1, 0}});
  CHECK(compared(json::array({Operation("mul", {"in0", "2"}), Operation("gt", {"v0", "in1"}, {"v1"})})).empty());
  CHECK(compared(json::array({Operation("gt", {"in0", "0.5"})})).empty());
}

TEST_CASE("A program that has a place for what is empty says so", "[rare]") {
  const auto empties = [](const json& graph) { return Of(graph).Emptied(); };
  CHECK(empties(json::array({Operation("sum", {"in0"}), Operation("clamp", {"v0", "1", "null"}, {"v1"})})));
  CHECK(empties(json::array({Operation("sum", {"in0"}), Operation("clamp_min", {"v0", "0.5"}, {"v1"})})));
  CHECK(empties(json::array({Operation("softmax", {"in0"}), Operation("nan_to_num", {"v0", "0.0"}, {"v1"})})));
  CHECK(empties(json::array({Operation("amax", {"in0"}), Operation("isinf", {"v0"}, {"v1"})})));
  CHECK(empties(json::array({Operation("pow", {"in0", "-0.5"}), Operation("eq", {"v0", "\"Infinity\""}, {"v1"})})));
  CHECK(empties(json::array({Operation("isinf", {"in0"}), Operation("index_put_", {"in1", "v0", "0"}, {"v1"})})));
  const auto where = [](const char* number, const char* power) {
    return json::array({Operation("sum", {"in0"}), Operation("gt", {"v0", number}, {"v1"}),
                        Operation("pow", {"v0", power}, {"v2"}), Operation("where", {"v1", "v2", "0"}, {"v3"})});
  };
  CHECK(empties(where("0", "-0.5")));
  CHECK(!empties(where("0", "2")));
  CHECK(!empties(where("3", "-0.5")));
  // A mask is compared with zero wherever it is applied.
  CHECK(!empties(json::array({Operation("eq", {"in0", "0"}), Operation("masked_fill", {"in1", "v0", "-1e9"}, {"v1"}),
                              Operation("div", {"v1", "in1"}, {"v2"})})));
  // The floor of a norm, a ceiling, a rectifier, and what only a constant fills are none.
  CHECK(!empties(json::array({Operation("norm", {"in0"}), Operation("clamp_min", {"v0", "1e-12"}, {"v1"})})));
  CHECK(!empties(json::array({Operation("clamp", {"in0", "null", "1"})})));
  CHECK(!empties(json::array({Operation("clamp_min", {"in0", "0"})})));
  CHECK(!empties(json::array({Operation("masked_fill", {"in0", "in1", "-1000000000.0"})})));
}

TEST_CASE("What is empty is so by the inputs that have a part in it", "[rare]") {
  // A temperature that is kept from zero says nothing of the mask beside it.
  const auto apart =
      json::array({Operation("clamp", {"in0", "0.01", "null"}), Operation("masked_fill", {"v0", "in1"}, {"v1"})});
  CHECK(Of(apart).empties == std::vector<bool>{true, false});
  const auto behind = json::array({Operation("sum", {"in1"}), Operation("clamp", {"v0", "1", "null"}, {"v1"}),
                                   Operation("div", {"in0", "v1"}, {"v2"})});
  CHECK(Of(behind).empties == std::vector<bool>{false, true});
}

TEST_CASE("NaN has a place where inputs are asked for it", "[rare]") {
  const auto treats = [](const json& graph) {
    const RareValues::OfInput of = Of(graph).inputs.at(0);
    return std::vector<bool>{of.nan, of.infinity};
  };
  CHECK(treats(json::array({Operation("isnan", {"in0"})})) == std::vector<bool>{true, false});
  CHECK(treats(json::array({Operation("isfinite", {"in0"})})) == std::vector<bool>{true, true});
  CHECK(treats(json::array({Operation("isinf", {"in0"})})) == std::vector<bool>{false, true});
  CHECK(treats(json::array({Operation("nan_to_num", {"in0", "0.5", "null", "null"})})) ==
        std::vector<bool>{true, false});
  CHECK(treats(json::array({Operation("nan_to_num", {"in0", "0.5", "1.0", "-1.0"})})) == std::vector<bool>{true, true});
  CHECK(treats(json::array({Operation("ne", {"in0", "in0"})})) == std::vector<bool>{true, false});
  CHECK(treats(json::array({Operation("log", {"in0"}), Operation("isnan", {"v0"}, {"v1"})})) ==
        std::vector<bool>{false, false});
}

TEST_CASE("A cosine, and what is put in the place of what a mask hides, are known", "[rare]") {
  const json sum = json::array({Operation("add", {"in0", "1", "1"})});
  CHECK(Of(sum).read);
  CHECK_FALSE(Of(sum).no_zero_rows);
  CHECK_FALSE(Of(sum).fills);
  CHECK_FALSE(Of(json::array()).read);
  CHECK(Of(json::array({Operation("cosine_similarity", {"in0", "p0", "1", "1e-08"})})).no_zero_rows);
  CHECK(Of(json::array({Operation("masked_fill", {"in0", "in1", "-1000000000.0"})})).fills);
  CHECK(Of(json::array({Operation("mul", {"in0", "-10000.0"})})).fills);
  CHECK_FALSE(Of(json::array({Operation("masked_fill", {"in0", "in1", "\"-Infinity\""})})).fills);
  CHECK_FALSE(Of(json::array({Operation("mul", {"in0", "-1"})})).fills);
  CHECK(Of(json::array({Operation("mul", {"in0", "1000000000.0"})})).fills);
  CHECK(Of(json::array({Operation("where", {"in1", "in0", "p0"})})).fills);
  CHECK(Of(json::array({Operation("where", {"in1", "in0", R"({"tensor":"float32[]"})"})})).fills);
  CHECK_FALSE(Of(json::array({Operation("mul", {"in0", "p0"})})).fills);
  CHECK_FALSE(Of(json::array({Operation("narrow", {"in0", "0", "64", "128"})})).fills);
  CHECK(Of(json::array({Operation("scaled_dot_product_attention", {"in0", "in0", "in0", "in1"})})).fills);
}

}  // namespace
}  // namespace grove::judge
