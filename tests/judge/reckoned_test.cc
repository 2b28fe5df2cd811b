#include "worker/judge/reckoned.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace grove::judge {
namespace {

using nlohmann::json;
using Names = std::vector<std::string>;

json Type(const std::string& dtype, const std::vector<int>& shape = {64, 4000}) {
  return {{"dtype", dtype}, {"shape", shape}};
}

json Operation(const std::string& kind, const Names& inputs, const json& type, const std::string& output = "v0") {
  return {{"kind", "aten::" + kind},
          {"inputs", inputs},
          {"outputs", json::array({output})},
          {"output_types", json::array({type})}};
}

double First(const json& graph, const std::string& dtype = "int32") {
  return Reckoned(graph, json::array({Type(dtype), Type(dtype)})).at(0);
}

TEST_CASE("Whole numbers of arithmetic alone go as far as sums stay below 2^24", "[reckoned]") {
  const json whole = Type("int32"), sums = Type("int64", {64});
  CHECK(First(json::array({Operation("div", {"in0", "7", "\"floor\""}, whole)})) == 0x1p24);
  CHECK(First(json::array({Operation("sum", {"in0", "[1]", "false", "null"}, sums)})) == 4096);
  CHECK(First(json::array({Operation("mul", {"in0", "in1"}, whole)})) == 4096);
  CHECK(First(json::array({Operation("add", {"in0", "in1", "1"}, whole), Operation("neg", {"v0"}, whole, "v1")})) ==
        0x1p23);
  CHECK(First(json::array({Operation("to", {"in0", "6"}, Type("float32")),
                           Operation("mul", {"v0", "p0"}, Type("float32"), "v1"),
                           Operation("mean", {"v1", "[1]"}, Type("float32", {64}), "v2")})) == 0x1p24);
  CHECK(First(json::array({Operation("sum", {"in0", "[1]", "false", "2"}, Type("int16", {64}))})) == 8);
}

TEST_CASE("What is chosen, placed, compared or measured by whole numbers keeps them", "[reckoned]") {
  const json whole = Type("int64");
  for (const char* kind : {"embedding", "gather", "index_select", "one_hot", "bincount", "repeat_interleave", "arange",
                           "nll_loss", "__rshift__", "bitwise_left_shift", "where", "sort", "cross_entropy_loss"}) {
    CAPTURE(kind);
    CHECK(First(json::array({Operation(kind, {"in0", "in1"}, whole)}), "int64") == 0);
    // Behind arithmetic, too.
    CHECK(First(json::array({Operation("add", {"in0", "1", "1"}, whole), Operation(kind, {"p0", "v0"}, whole, "v1")}),
                "int64") == 0);
  }
  CHECK(First(json::array({Operation("lt", {"p0", "in0"}, Type("bool"))})) == 0);
  CHECK(First(json::array({Operation("to", {"in0", "11"}, Type("bool"))})) == 0);
  CHECK(First(json::array({Operation("div", {"p0", "in0"}, Type("float32"))})) == 0);
  CHECK(First(json::array({Operation("max", {"in0", "1", "false"}, whole)})) == 0);
  CHECK(First(json::array({Operation("mul", {"in0", "p0"}, whole)})) == 0);  // by numbers of which nothing is known
  CHECK(First(json::array(
            {Operation("to", {"in0", "6"}, Type("float32")), Operation("to", {"v0", "4"}, whole, "v1")})) == 0);
  CHECK(First(json::array({Operation("to", {"in0", "0"}, Type("uint8"))})) == 0);
  CHECK(First(json::array({Operation("neg", {"in0"}, Type("int8"))}), "int8") == 0);
  CHECK(First(json::array({Operation("add_", {"in0", "1", "1"}, whole)})) == 0);
  CHECK(First(json::array()) == 0);
}

TEST_CASE("An input that keeps its values takes those that it meets with it", "[reckoned]") {
  const json whole = Type("int64");
  const std::vector<double> most = Reckoned(
      json::array({Operation("mul", {"in0", "in1"}, whole), Operation("gather", {"p0", "0", "in1"}, whole, "v1"),
                   Operation("neg", {"in2"}, whole, "v2")}),
      json::array({whole, whole, whole}));
  CHECK(most == std::vector<double>{0, 0, 0x1p24});
}

}  // namespace
}  // namespace grove::judge
