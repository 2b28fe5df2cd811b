#include "worker/judge/exactness.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace grove::judge {
namespace {

using nlohmann::json;
using Names = std::vector<std::string>;

json Types(const Names& dtypes) {
  json types = json::array();
  for (const std::string& dtype : dtypes) types.push_back({{"dtype", dtype}});
  return types;
}

json Operation(const std::string& kind, const Names& inputs, const Names& outputs, const Names& dtypes) {
  return {{"kind", kind}, {"inputs", inputs}, {"outputs", outputs}, {"output_types", Types(dtypes)}};
}

Exactness Of(const json& graph, const std::string& output, const Names& inputs = {"float32", "float32"}) {
  const auto all = ExactnessOf(graph, json::array({output}), Types(inputs), Types({"float32"}));
  REQUIRE(all.size() == 1);
  return all[0];
}

TEST_CASE("Comparisons, selections and counts of untouched inputs are exact", "[exactness]") {
  const json equal = Operation("aten::eq", {"in0", "in1"}, {"v0"}, {"bool"});
  CHECK(Of(json::array({equal}), "v0") == Exactness::kExact);
  CHECK(Of(json::array({equal, Operation("aten::sum", {"v0", "[1]"}, {"v1"}, {"int64"})}), "v1") == Exactness::kExact);
  CHECK(Of(json::array({Operation("aten::relu", {"in0"}, {"v0"}, {"float32"}),
                        Operation("aten::bucketize", {"v0", "p0"}, {"v1"}, {"int64"})}),
           "v1") == Exactness::kExact);
  CHECK(Of(json::array({Operation("aten::to", {"in0", "7"}, {"v0"}, {"float64"}),
                        Operation("aten::gt", {"v0", "0.5"}, {"v1"}, {"bool"})}),
           "v1", {"bfloat16"}) == Exactness::kExact);
  CHECK(Of(json::array({Operation("aten::mul", {"in0", "in1"}, {"v0"}, {"int32"})}), "v0", {"int32", "int32"}) ==
        Exactness::kExact);
  CHECK(Of(json::array({equal, Operation("aten::gt", {"in0", "-1"}, {"v1"}, {"bool"}),
                        Operation("aten::__and__", {"v0", "v1"}, {"v2"}, {"bool"})}),
           "v2") == Exactness::kExact);
  CHECK(Of(json::array(), "in0") == Exactness::kExact);
}

TEST_CASE("Positions among equal keys are chosen, and so is what follows from them", "[exactness]") {
  CHECK(Of(json::array({Operation("aten::argmax", {"in0", "1"}, {"v0"}, {"int64"})}), "v0") == Exactness::kChosen);
  const json sort = Operation("aten::sort", {"in0", "1"}, {"v0", "v1"}, {"float32", "int64"});
  CHECK(Of(json::array({sort}), "v0") == Exactness::kExact);
  CHECK(Of(json::array({sort}), "v1") == Exactness::kChosen);
  CHECK(Of(json::array({sort, Operation("aten::eq", {"v1", "0"}, {"v2"}, {"bool"})}), "v2") == Exactness::kChosen);
  const json most = Operation("aten::max", {"in0", "1", "false"}, {"v0", "v1"}, {"float32", "int64"});
  CHECK(Of(json::array({most}), "v1") == Exactness::kChosen);
  CHECK(Of(json::array({Operation("aten::max", {"in0"}, {"v0"}, {"float32"})}), "v0") == Exactness::kExact);
  const json pool = Operation("aten::adaptive_max_pool2d", {"in0", "[4,4]"}, {"v0", "v1"}, {"float32", "int64"});
  CHECK(Of(json::array({pool}), "v0") == Exactness::kExact);
  CHECK(Of(json::array({pool}), "v1") == Exactness::kChosen);
}

TEST_CASE("Keys that no nudge parts are chosen as torch documents it, or not known", "[exactness]") {
  const auto chosen = [](const char* step, const char* key, const char* choice) {
    return Of(json::array({Operation(step, {"in0", "0"}, {"v0"}, {key}),
                           Operation("aten::to", {"v0", "6"}, {"v1"}, {"float32"}),
                           Operation(choice, {"v1", "1"}, {"v2"}, {"int64"})}),
              "v2");
  };
  for (const char* step : {"aten::ne", "aten::sign", "aten::floor"}) {
    CAPTURE(step);
    const char* key = std::string(step) == "aten::ne" ? "bool" : "float32";
    CHECK(chosen(step, key, "aten::argmax") == Exactness::kExact);
    CHECK(chosen(step, key, "aten::argsort") == Exactness::kRounded);
  }
  CHECK(chosen("aten::clamp_min", "float32", "aten::argmax") == Exactness::kChosen);
  CHECK(Of(json::array({Operation("aten::argmax", {"in0", "1"}, {"v0"}, {"int64"})}), "v0", {"int32"}) ==
        Exactness::kExact);
}

TEST_CASE("Arithmetic with fractions, what narrows and what is not known is rounded", "[exactness]") {
  for (const char* kind :
       {"aten::mul", "aten::matmul", "aten::exp", "aten::isclose", "aten::mean", "aten::new_thing", "mine::eq", ""}) {
    CAPTURE(kind);
    CHECK(Of(json::array({Operation(kind, {"in0", "in1"}, {"v0"}, {"float32"}),
                          Operation("aten::gt", {"v0", "0"}, {"v1"}, {"bool"})}),
             "v1") == Exactness::kRounded);
  }
  CHECK(Of(json::array({Operation("aten::to", {"in0", "5"}, {"v0"}, {"float16"}),
                        Operation("aten::argmax", {"v0", "1"}, {"v1"}, {"int64"})}),
           "v1") == Exactness::kRounded);
  CHECK(Of(json::array({Operation("aten::div", {"in0", "in1"}, {"v0"}, {"float32"})}), "v0", {"int64", "int64"}) ==
        Exactness::kRounded);
  // What an operation in place writes to is known by another name, too.
  CHECK(Of(json::array({Operation("aten::mul_", {"in0", "in1"}, {"v0"}, {"float32"}),
                        Operation("aten::gt", {"in0", "0"}, {"v1"}, {"bool"})}),
           "v1") == Exactness::kRounded);
  // 0.1 is rounded to a half type by one program and not by another; 0.25 is one, and float32 is fine enough.
  const auto above = [](const char* number) {
    return json::array({Operation("aten::gt", {"in0", number}, {"v0"}, {"bool"})});
  };
  CHECK(Of(above("0.1"), "v0", {"bfloat16"}) == Exactness::kRounded);
  CHECK(Of(above("0.25"), "v0", {"bfloat16"}) == Exactness::kExact);
  CHECK(Of(above("0.1"), "v0", {"float32"}) == Exactness::kExact);
  // A tensor that is no input may have been made by anything.
  CHECK(Of(json::array({Operation("aten::floor", {R"({"tensor":"float32[8]"})"}, {"v0"}, {"float32"}),
                        Operation("aten::gt", {"v0", "0"}, {"v1"}, {"bool"})}),
           "v1") == Exactness::kRounded);
  CHECK(Of(json::array({Operation("aten::round", {"in0", "2"}, {"v0"}, {"float32"}),
                        Operation("aten::gt", {"v0", "0"}, {"v1"}, {"bool"})}),
           "v1") == Exactness::kRounded);
  CHECK(Of(json::array(), "v7") == Exactness::kRounded);
  CHECK(Of(json::array(), "3") == Exactness::kRounded);
}

}  // namespace
}  // namespace grove::judge
