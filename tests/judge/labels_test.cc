#include "worker/judge/labels.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace grove::judge {
namespace {

using nlohmann::json;

json Operation(const std::string& kind, const std::vector<std::string>& inputs, const std::string& output = "v0") {
  return {{"kind", "aten::" + kind}, {"inputs", inputs}, {"outputs", json::array({output})}};
}

Labels Of(const json& graph) {
  const json type{{"dtype", "int64"}, {"shape", {64}}};
  return LabelsOf(graph, json::array({type, type}));
}

TEST_CASE("Indices may come twice where nothing is written to places that they name", "[labels]") {
  CHECK(Of(json::array({Operation("embedding", {"p0", "in0", "-1", "false", "false"})})).may_repeat);
  CHECK(Of(json::array({Operation("index_add_", {"v9", "0", "in0", "p0", "1"})})).may_repeat);
  CHECK(Of(json::array({Operation("scatter_", {"v9", "1", "in0", "1.0"})})).may_repeat);
  CHECK(Of(json::array({Operation("index_put_", {"v9", "v8", "p0", "true"})})).may_repeat);
  CHECK_FALSE(Of(json::array({Operation("scatter_", {"v9", "1", "in0", "p0"})})).may_repeat);
  CHECK_FALSE(Of(json::array({Operation("index_put_", {"v9", "v8", "p0", "false"})})).may_repeat);
  CHECK_FALSE(Of(json::array({Operation("index_copy", {"v9", "0", "in0", "p0"})})).may_repeat);
  CHECK_FALSE(Of(json::array()).may_repeat);
  CHECK_FALSE(Of(json()).may_repeat);
}

TEST_CASE("A label that a program names is known, also behind what only moves it", "[labels]") {
  const json view = Operation("view", {"in1", "[-1]"});
  const auto named = [&](const json& operation) { return Of(json::array({view, operation})).named.at(1); };
  const auto loss = named(Operation("cross_entropy_loss", {"in0", "v0", "null", "1", "255", "0.0"}, "v1"));
  REQUIRE(loss.size() == 1);
  CHECK(loss[0].value == 255);
  CHECK(loss[0].alone);
  const auto bag =
      named(Operation("embedding_bag", {"p0", "v0", "null", "false", "0", "false", "null", "false", "3"}, "v1"));
  REQUIRE(bag.size() == 1);
  CHECK(bag[0].value == 3);
  CHECK_FALSE(bag[0].alone);
  CHECK(named(Operation("ne", {"v0", "7"}, "v1")).at(0).value == 7);
  // torch's defaults, an operand that is no number, and a value that something wrote to.
  CHECK(named(Operation("cross_entropy_loss", {"in0", "v0", "null", "1", "-100", "0.0"}, "v1")).empty());
  CHECK(named(Operation("embedding_bag", {"p0", "v0", "null", "false", "0", "false", "null", "false", "-1"}, "v1"))
            .empty());
  CHECK(named(Operation("eq", {"v0", "in0"}, "v1")).empty());
  CHECK(Of(json::array({Operation("eq", {"in1", "7"}), Operation("masked_fill_", {"in1", "v0", "3"}, "v1")}))
            .named.at(1)
            .empty());
}

}  // namespace
}  // namespace grove::judge
