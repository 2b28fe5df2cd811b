#include "worker/judge/indices.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace grove::judge {
namespace {

using nlohmann::json;
using Names = std::vector<std::string>;
using Use = Indices::Use;

json Type(const std::string& dtype, const std::vector<int>& shape) { return {{"dtype", dtype}, {"shape", shape}}; }

json Operation(const std::string& kind, const Names& inputs, const std::string& output = "v0",
               const json& type = Type("float32", {64, 8})) {
  return {{"kind", kind.find("::") == std::string::npos ? "aten::" + kind : kind},
          {"inputs", inputs},
          {"outputs", json::array({output})},
          {"output_types", json::array({type})}};
}

// in0: scores of 64 rows and 10 classes; in1 and in2: 64 whole numbers; p0: a table of 500 rows, p1: of 90.
std::vector<Indices> Of(const json& graph) {
  const json whole = Type("int64", {64});
  return IndicesOf(graph, json::array({Type("float32", {64, 10}), whole, whole}),
                   json::array({Type("float32", {500, 8}), Type("float32", {90, 8})}));
}
Indices First(const json& graph) { return Of(graph).at(1); }

json Loss(const std::string& ignored, const std::string& label = "in1") {
  return Operation("cross_entropy_loss", {"in0", label, "null", "1", ignored, "0.0"}, "v9");
}
json Rows(const std::string& table, const std::string& rows = "in1") {
  return Operation("embedding", {table, rows, "-1", "false", "false"}, "v8");
}
json List(const Names& items) { return Operation("prim::ListConstruct", items, "v7", {{"dtype", "Tensor[]"}}); }

TEST_CASE("What is looked up, counted as a class or compared with numbers is a label", "[indices]") {
  const Indices rows = First(json::array({Rows("p0")}));
  CHECK(rows.use == Use::kLabels);
  CHECK(First(json::array({Operation("ne", {"in1", "3"})})).use == Use::kLabels);
  CHECK(First(json::array({Operation("view", {"in1", "[8, 8]"}, "v1"), Rows("p0", "v1")})).use == Use::kLabels);
  // Of the others, and of what is not used, nothing is known.
  CHECK(Of(json::array({Rows("p0")})).at(0).use == Use::kOther);
  CHECK(Of(json::array({Rows("p0")})).at(2).use == Use::kOther);
}

TEST_CASE("What says where something is read, and is compared with a number, is a name", "[indices]") {
  const json names =
      json::array({List({"in1"}), Operation("index", {"p1", "v7"}), Operation("ne", {"in1", "0"}, "v1")});
  CHECK(First(names).use == Use::kNames);
  CHECK(First(names).compared == std::vector<double>{0});
  const json added =
      json::array({Operation("index_add", {"p0", "0", "in1", "in0", "1"}), Operation("ne", {"in1", "0"})});
  CHECK(First(added).use == Use::kPlaces);
}

TEST_CASE("A number that is replaced before anything is looked up does no harm there", "[indices]") {
  const json whole = Type("int64", {64}), flags = Type("bool", {64});
  const auto then = [&](std::vector<json> before, const std::string& rows) {
    before.push_back(Rows("p0", rows));
    return First(json(before)).compared;
  };
  const auto compare = [&](const std::string& kind, const std::string& number) {
    return Operation(kind, {"in1", number}, "v1", flags);
  };
  const auto fill = [&](const std::string& of, const std::string& mask, const std::string& number) {
    return Operation("masked_fill", {of, mask, number}, "v3", whole);
  };
  const json not_that = Operation("bitwise_not", {"v1"}, "v2", flags);
  const std::vector<double> ignored{-100}, none{-1};
  CHECK(then({compare("ne", "-100"), not_that, fill("in1", "v2", "0")}, "v3") == ignored);
  CHECK(then({compare("eq", "-100"), fill("in1", "v1", "0")}, "v3") == ignored);
  CHECK(then({compare("ge", "0"), Operation("clamp", {"in1", "0", "null"}, "v3", whole)}, "v3") == none);
  CHECK(then({compare("gt", "-1"), Operation("clamp_min", {"in1", "1"}, "v3", whole)}, "v3") == none);
  CHECK(then({compare("lt", "0"), fill("in1", "v1", "0")}, "v3") == none);
  const json zeros = Operation("zeros_like", {"in1"}, "v4", whole);
  CHECK(then({compare("ne", "-1"), zeros, Operation("where", {"v1", "in1", "v4"}, "v3", whole)}, "v3") == none);
  CHECK(then({compare("eq", "-1"), Operation("where", {"v1", "0", "in1"}, "v3", whole)}, "v3") == none);
  // Where it is left, where another is replaced, and where what stands there is none of the table's.
  CHECK(then({compare("ne", "-100")}, "in1").empty());
  CHECK(then({compare("ne", "-100"), fill("in1", "v1", "0")}, "v3").empty());
  CHECK(then({compare("eq", "-1"), Operation("where", {"v1", "in1", "0"}, "v3", whole)}, "v3").empty());
  CHECK(then({compare("eq", "-100"), fill("in1", "v1", "500")}, "v3").empty());
  CHECK(then({compare("eq", "-100"), fill("in1", "v1", "-100")}, "v3").empty());
  CHECK(then({compare("eq", "-100"), Operation("clamp", {"in1", "-200", "null"}, "v3", whole)}, "v3").empty());
  const json slice = Operation("slice", {"in1", "0", "1", "null", "1"}, "v5", whole);
  CHECK(then({compare("eq", "-100"), slice, fill("v5", "v1", "0")}, "v3").empty());
  // Also used as it is.
  CHECK(First(json::array({compare("eq", "-100"), fill("in1", "v1", "0"), Rows("p0", "v3"), Rows("p1")}))
            .compared.empty());
  // What is changed, and what says how many there are or where.
  json change = Operation("fill_", {"v5", "0"}, "v6", flags);
  CHECK(then({compare("eq", "-100"), change, fill("in1", "v1", "0")}, "v3").empty());
  const auto with = [&](std::vector<json> rest) {
    rest.insert(rest.begin(), {compare("eq", "-100"), fill("in1", "v1", "0"), Rows("p0", "v3")});
    return First(json(rest));
  };
  CHECK(with({Operation("mul", {"v8", "v1"}, "v5")}).compared == ignored);
  CHECK(with({Operation("repeat_interleave", {"v1", "4", "0", "null"}, "v5")}).compared == ignored);
  CHECK(with({Operation("masked_scatter", {"v8", "v1", "in0"}, "v5")}).use == Use::kOther);
  const json count = Operation("cumsum", {"v1", "0", "null"}, "v5", whole);
  CHECK(with({count, Operation("gather", {"in0", "0", "v5", "false"}, "v6")}).use == Use::kOther);
  CHECK(with({count, List({"v5"}), Operation("index", {"p1", "v7"}, "v6")}).use == Use::kOther);
  CHECK(First(json::array({compare("eq", "-100"), fill("in1", "v1", "10"), Operation("one_hot", {"v3", "10"}, "v5")}))
            .use == Use::kOther);
  // Another order than that of zero says nothing of single numbers.
  CHECK(First(json::array({compare("ge", "7"), Rows("p0")})).use == Use::kOther);
}

TEST_CASE("What says where something is read or added to is a place", "[indices]") {
  const Indices read = First(json::array({Operation("index_select", {"p0", "0", "in1"})}));
  CHECK(read.use == Use::kPlaces);
  CHECK_FALSE(read.adds);
  const Indices added = First(json::array({Operation("index_add_", {"p0", "0", "in1", "in0", "1"})}));
  CHECK(added.use == Use::kPlaces);
  CHECK(added.adds);
  CHECK(First(json::array({List({"in1"}), Operation("index", {"p1", "v7"})})).use == Use::kPlaces);
  const json sums = Operation("index_add", {R"({"tensor":"float32[16,8]"})", "0", "in1", "in0", "1"});
  CHECK(First(json::array({sums})).use == Use::kPlaces);
  CHECK(First(json::array({sums, Rows("p0")})).use == Use::kOther);
  CHECK(First(json::array({Operation("bincount", {"in1", "null", "0"}), sums})).use == Use::kPlaces);
  CHECK(First(json::array({Operation("ones_like", {"in1", "6"}), sums})).use == Use::kPlaces);
  CHECK(First(json::array({List({"null", "in1"}), Operation("index", {"p1", "v7"}), Rows("p0")})).use == Use::kOther);
  CHECK(First(json::array({Operation("scatter_", {"p0", "0", "in1", "1.0"})})).use == Use::kPlaces);
  CHECK(First(json::array({List({"in1"}), Operation("index_put_", {"p0", "v7", "in0", "true"})})).adds);
}

TEST_CASE("Anything else that is done with an input leaves it as it is", "[indices]") {
  // Of two values for one place one stays, and nobody says which.
  CHECK(First(json::array({List({"in1"}), Operation("index_put_", {"p0", "v7", "in0", "false"})})).use == Use::kOther);
  CHECK(First(json::array({Operation("scatter_", {"p0", "0", "in1", "in0"})})).use == Use::kOther);
  CHECK(First(json::array({Operation("index_copy", {"p0", "0", "in1", "in0"})})).use == Use::kOther);
  // Numbers for which there is arithmetic, that are cut off, or that are written to.
  CHECK(First(json::array({Rows("p0"), Operation("add", {"in1", "1", "1"})})).use == Use::kOther);
  CHECK(First(json::array({Rows("p0"), Operation("lt", {"v3", "in1"})})).use == Use::kOther);
  CHECK(First(json::array({Rows("p0"), Operation("eq", {"in1", "in2"})})).use == Use::kOther);
  CHECK(First(json::array({Rows("p0"), Operation("masked_fill_", {"in1", "v3", "0"})})).use == Use::kOther);
  CHECK(First(json::array({List({"in1", "in2"}), Operation("cat", {"v7", "0"})})).use == Use::kOther);
  const json mask = Operation("gt", {"in0", "0"}, "v5", Type("bool", {64, 10}));
  CHECK(First(json::array({mask, List({"v5", "in1"}), Operation("index", {"p0", "v7"})})).use == Use::kOther);
  CHECK(First(json::array({Operation("view", {"in1", "3"}, "v1"), Rows("p0", "v1")})).use == Use::kOther);
  // A number of the larger table may be none of the smaller.
  CHECK(First(json::array({Rows("p0"), Rows("p1")})).use == Use::kOther);
  CHECK(First(json::array({Operation("slice", {"in1", "0", "1", "9", "1"}, "v1"), Rows("p0", "v1"), Rows("p1")})).use ==
        Use::kOther);
}

TEST_CASE("A number that a program names is tried where it does no harm", "[indices]") {
  const auto named = [](const json& graph) { return First(graph).named; };
  const json asks = Operation("ne", {"in1", "255"}), zero = Operation("eq", {"in1", "0"});
  const std::vector<double> none;
  CHECK(named(json::array({Loss("255")})) == std::vector<double>{255});
  CHECK(named(json::array({Loss("3"), Loss("3")})) == std::vector<double>{3});
  const auto compared = [](const json& graph) { return First(graph).compared; };
  CHECK(compared(json::array({asks})) == std::vector<double>{255});
  CHECK(compared(json::array({Rows("p0"), zero})) == std::vector<double>{0});
  CHECK(compared(json::array({Rows("p1"), asks})) == none);
  CHECK(compared(json::array({Operation("bincount", {"in1", "null", "0"}), zero})) == none);
  const auto bag = [&](const std::string& padding) {
    return named(json::array(
        {Operation("embedding_bag", {"p0", "in1", "null", "false", "0", "false", "null", "false", padding})}));
  };
  CHECK(bag("7") == std::vector<double>{7});
  CHECK(bag("-1") == none);
  // A class, or a row, that does not exist.
  CHECK(named(json::array({Loss("-100")})) == none);
  CHECK(compared(json::array({Loss("-100"), asks})) == none);
  CHECK(named(json::array({Loss("255"), Loss("-100")})) == none);
  CHECK(named(json::array({Loss("255"), Rows("p1")})) == none);
  CHECK(compared(json::array({Rows("p0"), Operation("ne", {"in1", "-1"})})) == none);
}

}  // namespace
}  // namespace grove::judge
