#include "worker/judge/operations.h"

#include <catch2/catch.hpp>

namespace grove::judge {
namespace {

using nlohmann::json;

TEST_CASE("An operation has a name behind its namespace, and one that works in place says so", "[operations]") {
  CHECK(OperationName("aten::add_") == "add_");
  CHECK(OperationName("my::own::op") == "op");
  CHECK(OperationName("add") == "add");
  CHECK(OperationName("") == "");
  for (const char* kind : {"aten::mul_", "aten::__iand__", "aten::_"}) CHECK(InPlace(kind));
  for (const char* kind : {"aten::mul", "aten::__and__", "aten::__or__", "aten::__invert__", ""})
    CHECK_FALSE(InPlace(kind));
}

TEST_CASE("An operand is a constant, or the name of a value", "[operations]") {
  CHECK(Number("1") == 1.0);
  CHECK(Number("-0.5") == -0.5);
  CHECK(Number("1e400") == std::nullopt);  // no double
  for (const char* other : {"true", "null", "[1]", "\"1\"", "in0", "v1", "", "{\"tensor\":\"float32[4]\"}"})
    CHECK(Number(other) == std::nullopt);
  CHECK(Constant("[0, 1]") == json::array({0, 1}));
  for (const char* name : {"in0", "p1", "v12", ""}) CHECK(Constant(name).is_discarded());
  const json operands = json::array({"in0", "2"});
  CHECK(Number(operands, 1) == 2.0);
  CHECK(Number(operands, 0) == std::nullopt);
  CHECK(Number(operands, 2) == std::nullopt);
}

}  // namespace
}  // namespace grove::judge
