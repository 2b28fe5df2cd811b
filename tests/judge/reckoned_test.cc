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
                           Operation("mul", {"v1", "p1"}, Type("float32"), "v2")})) == 0x1p24);
  CHECK(First(json::array({Operation("sum", {"in0", "[1]", "false", "2"}, Type("int16", {64}))})) == 8);
}

TEST_CASE("Sums that are kept in 64 bits stay below 2^31 where 2^24 holds none", "[reckoned]") {
  const json whole = Type("int64"), all = Type("int64", {});
  const json rest = Operation("remainder", {"in0", "977"}, whole);
  // 256,000 remainders are up to 2.5e8, whatever they are left of.
  CHECK(First(json::array({rest, Operation("sum", {"v0", "null"}, all, "v1")}), "int64") == 0x1p24);
  CHECK(
      First(json::array({rest, Operation("sum", {"v0", "null"}, all, "v1"), Operation("mul", {"v1", "2"}, all, "v2")}),
            "int64") == 0);
  CHECK(First(json::array(
                  {Operation("floor_divide", {"in0", "1000"}, whole), Operation("sum", {"v0", "null"}, all, "v1")}),
              "int64") == 0x1p15);
  CHECK(
      First(json::array({Operation("remainder", {"in0", "60000"}, whole), Operation("sum", {"v0", "null"}, all, "v1")}),
            "int64") == 0);
}

// 4,000 of them, so that 2^30 holds the sums of what is below 2^18.
TEST_CASE("Sums of fractions that are made of whole numbers could be made in 32 bits", "[reckoned]") {
  const json fractions = Type("float32"), rows = Type("float32", {64});
  const json converted = Operation("to", {"in0", "6"}, fractions);
  CHECK(First(json::array({converted, Operation("mean", {"v0", "[1]"}, rows, "v1")})) == 0x1p18);
  // A mean is no larger than its terms, and scales, shifts and shares are taken for one.
  const json scaled = Operation("mul", {"v0", "0.05"}, fractions, "v1");
  CHECK(First(json::array({converted, scaled, Operation("sum", {"v1", "[1]", "false", "null"}, rows, "v2")})) ==
        0x1p18);
  CHECK(First(json::array({converted, Operation("mul", {"p0", "v0"}, fractions, "v1"),
                           Operation("sum", {"v1", "[1]", "false", "null"}, rows, "v2")})) == 0x1p18);
  CHECK(First(json::array({converted, Operation("div", {"v0", "0.001"}, fractions, "v1")})) == 0x1p24);
  CHECK(First(json::array({converted, Operation("mean", {"v0", "[1]", "true"}, Type("float32", {64, 1}), "v1"),
                           Operation("sub", {"v0", "v1", "1"}, fractions, "v2"),
                           Operation("mul", {"v2", "v2"}, fractions, "v3"),
                           Operation("mean", {"v3", "[1]"}, rows, "v4")})) == 256);
  // Products of two of them.
  CHECK(First(json::array({converted, Operation("to", {"in1", "6"}, Type("float32", {4000, 64}), "w"),
                           Operation("matmul", {"v0", "w"}, Type("float32", {64, 64}), "v1")})) == 512);
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
