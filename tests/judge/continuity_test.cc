#include "worker/judge/continuity.h"

#include <catch2/catch.hpp>
#include <string>

namespace grove::judge {
namespace {

using nlohmann::json;

json Operation(const std::string& kind, const std::string& type = "float32") {
  json value;
  value["dtype"] = type;
  json operation;
  operation["kind"] = kind;
  operation["output_types"] = json::array({value});
  return operation;
}

TEST_CASE("A graph of smooth operations has no jumps, also where they work in place", "[continuity]") {
  CHECK(Continuous(json::array({Operation("aten::layer_norm"), Operation("aten::linear"), Operation("aten::relu_")})));
  CHECK(Continuous(json::array({Operation("aten::matmul", "bfloat16"), Operation("aten::t", "float16")})));
}

TEST_CASE("One threshold, index, pole or unknown operation makes a graph one that may jump", "[continuity]") {
  for (const char* kind : {"aten::hardshrink", "aten::sign", "aten::floor", "aten::round", "aten::remainder",
                           "aten::gt", "aten::where", "aten::argmax", "aten::topk", "aten::sort", "aten::div",
                           "aten::reciprocal", "aten::something_new", "mine::add", "add", ""}) {
    CAPTURE(kind);
    CHECK_FALSE(Continuous(json::array({Operation("aten::matmul"), Operation(kind)})));
  }
  // By a name that is known, and yet whole numbers.
  CHECK_FALSE(Continuous(json::array({Operation("aten::sum", "int64")})));
  CHECK_FALSE(Continuous(json::array({Operation("aten::add", "bool")})));
  CHECK_FALSE(Continuous(json::array({json::object()})));
  CHECK_FALSE(Continuous(json::array()));
}

TEST_CASE("A graph that chooses is known by its operations", "[continuity]") {
  for (const char* kind : {"aten::amax", "aten::max", "aten::topk", "aten::sort", "aten::median", "aten::max_pool2d"}) {
    CAPTURE(kind);
    CHECK(Chooses(json::array({Operation("aten::matmul"), Operation(kind)})));
  }
  CHECK_FALSE(Chooses(json::array({Operation("aten::matmul"), Operation("aten::softmax"), Operation("aten::sum")})));
  CHECK_FALSE(Chooses(json::array({Operation("mine::amax"), Operation("amax"), json::object()})));
  CHECK_FALSE(Chooses(json::array()));
}

}  // namespace
}  // namespace grove::judge
