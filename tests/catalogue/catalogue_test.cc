#include "coordinator/generate/catalogue/catalogue.h"

#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "coordinator/generate/catalogue/emit.h"
#include "coordinator/generate/catalogue/family.h"
#include "coordinator/generate/catalogue/recipe.h"
#include "tests/catalogue/graph_fixture.h"

namespace grove::generate {
namespace {

using catalogue::ParseRecipe;
using testing::LoadGraph;

Context ContextOf(const std::string& graph, uint64_t seed = 7) {
  Context context;
  context.description = LoadGraph(graph).description;
  context.device.set_kind(v1::DEVICE_KIND_CPU);
  context.device.set_arch("x86-64/avx2");
  context.seed = seed;
  return context;
}

IdeaRequest Ideas(const std::string& key, int count, const v1::KernelNode& parent = {}) {
  IdeaRequest request;
  request.request = key;
  request.count = count;
  request.parent = parent;
  return request;
}

KernelRequest Write(const v1::IdeaNode& idea, int variant) {
  KernelRequest request;
  request.idea = idea;
  request.variant = variant;
  return request;
}

TEST_CASE("The catalogue's ideas from the reference include the plain kernel and have what a tree needs",
          "[catalogue]") {
  auto generator = MakeCatalogueGenerator();
  for (const char* graph :
       {"gelu_by_hand", "softmax_last", "layer_norm", "rms_norm_dim1", "sum_dim", "matmul", "conv_relu_maxpool"}) {
    CAPTURE(graph);
    const Context context = ContextOf(graph);
    REQUIRE(generator->Supports(context).ok());
    auto answer = generator->ProposeIdeas(context, Ideas("r0/p/ideas", 4));
    REQUIRE(answer.ok());
    REQUIRE(answer->ideas.size() == 4);
    bool plain = false;
    for (const v1::IdeaNode& idea : answer->ideas) {
      CHECK(!idea.title().empty());
      CHECK(!idea.description().empty());
      CHECK(!idea.category().empty());
      CHECK(idea.predicted_speedup() > 0);
      auto kernel = generator->WriteKernel(context, Write(idea, 0));
      REQUIRE(kernel.ok());
      CHECK(kernel->kernel.candidate().format() == v1::CANDIDATE_FORMAT_CPP);
      CHECK_THAT(kernel->kernel.candidate().source(), Catch::Contains("GROVE_KERNEL(args)"));
      auto recipe = ParseRecipe(kernel->kernel.recipe());
      REQUIRE(recipe.ok());
      plain = plain || recipe->settings.empty();
    }
    CHECK(plain);
  }
}

TEST_CASE("The catalogue answers the same request in the same way and another seed in another", "[catalogue]") {
  auto generator = MakeCatalogueGenerator();
  v1::KernelNode parent;
  parent.set_id("j/k1");
  parent.set_recipe(R"({"device":"cpu","operation":"softmax","settings":{"simd":1,"simd.bytes":32}})");
  auto once = generator->ProposeIdeas(ContextOf("softmax_last"), Ideas("r1/pj/k1/ideas", 5, parent));
  auto twice = MakeCatalogueGenerator()->ProposeIdeas(ContextOf("softmax_last"), Ideas("r1/pj/k1/ideas", 5, parent));
  REQUIRE(once.ok());
  REQUIRE(twice.ok());
  REQUIRE(once->ideas.size() == twice->ideas.size());
  for (size_t i = 0; i < once->ideas.size(); ++i) {
    CHECK(once->ideas[i].SerializeAsString() == twice->ideas[i].SerializeAsString());
  }
  std::set<std::string> answers;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    auto other = generator->ProposeIdeas(ContextOf("softmax_last", seed), Ideas("r1/pj/k1/ideas", 5, parent));
    REQUIRE(other.ok());
    std::string all;
    for (const v1::IdeaNode& idea : other->ideas) all += idea.recipe();
    answers.insert(all);
  }
  CHECK(answers.size() >= 4);
}

TEST_CASE("A search through the catalogue never proposes a recipe twice, and ends with a clear word", "[catalogue]") {
  auto generator = MakeCatalogueGenerator();
  Context context = ContextOf("max_pool2d");
  v1::KernelNode parent;
  std::set<std::string> recipes;
  std::vector<v1::KernelNode> kernels = {parent};
  absl::Status end;
  for (int round = 0; round < 400 && end.ok(); ++round) {
    const v1::KernelNode from = kernels[round % kernels.size()];
    auto answer = generator->ProposeIdeas(context, Ideas("r" + std::to_string(round), 4, from));
    if (!answer.ok()) {
      if (round % kernels.size() == 0 && round > 0) end = answer.status();
      continue;
    }
    for (v1::IdeaNode idea : answer->ideas) {
      auto kernel = generator->WriteKernel(context, Write(idea, 0));
      REQUIRE(kernel.ok());
      INFO(kernel->kernel.recipe());
      CHECK(recipes.insert(kernel->kernel.recipe()).second);
      idea.set_state(v1::NODE_STATE_DONE);
      idea.set_credit(1.1);
      context.tried.push_back(idea);
      kernel->kernel.set_id("j/k" + std::to_string(kernels.size()));
      kernels.push_back(kernel->kernel);
    }
  }
  CHECK(recipes.size() >= 15);
  CHECK(end.code() == absl::StatusCode::kNotFound);
  CHECK_THAT(std::string(end.message()), Catch::Contains("everything that it knows was tried"));
}

TEST_CASE("Variants of an idea differ in parameters, and there are only so many", "[catalogue]") {
  auto generator = MakeCatalogueGenerator();
  const Context context = ContextOf("matmul");
  v1::IdeaNode idea;
  idea.set_recipe(R"({"action":"on","focus":"tile","recipe":{"device":"cpu","operation":"matmul","settings":)"
                  R"({"simd":1,"simd.bytes":32,"tile":1,"tile.kc":256,"tile.mr":6,"tile.nv":2}}})");
  std::set<std::string> recipes;
  for (int variant = 0; variant < 8; ++variant) {
    auto kernel = generator->WriteKernel(context, Write(idea, variant));
    REQUIRE(kernel.ok());
    CHECK(recipes.insert(kernel->kernel.recipe()).second);
    CHECK(ParseRecipe(kernel->kernel.recipe())->Has("tile"));
  }
  CHECK(!generator->WriteKernel(context, Write(idea, 100'000)).ok());
}

TEST_CASE("A repair goes back to safe parameters, then does without", "[catalogue]") {
  auto generator = MakeCatalogueGenerator();
  const Context context = ContextOf("matmul");
  KernelRequest request;
  request.idea.set_recipe(R"({"action":"on","focus":"tile","recipe":{"device":"cpu","operation":"matmul","settings":)"
                          R"({"simd":1,"simd.bytes":32,"tile":1,"tile.kc":512,"tile.mr":12,"tile.nv":3}}})");
  request.repair = 1;
  request.failed.set_recipe(
      R"({"device":"cpu","operation":"matmul","settings":{"simd":1,"simd.bytes":32,"tile":1,"tile.kc":512,"tile.mr":12,"tile.nv":3}})");
  auto first = generator->WriteKernel(context, request);
  REQUIRE(first.ok());
  auto recipe = ParseRecipe(first->kernel.recipe());
  CHECK(recipe->Get("tile", "mr", 0) == 4);
  CHECK(recipe->Get("tile", "kc", 0) == 128);
  request.failed = first->kernel;
  auto second = generator->WriteKernel(context, request);
  REQUIRE(second.ok());
  CHECK(!ParseRecipe(second->kernel.recipe())->Has("tile"));
}

TEST_CASE("A banked kernel of the same operation is a start, fitted to the new shapes", "[catalogue]") {
  auto generator = MakeCatalogueGenerator();
  Context context = ContextOf("softmax_last");
  v1::BankEntry entry;
  entry.set_id("b-12345678");
  entry.set_operation("softmax");
  entry.set_problem_name("other softmax");
  entry.set_speedup(2.5);
  entry.set_recipe(
      R"({"device":"cpu","operation":"softmax","settings":{"simd":1,"simd.bytes":64,"keep_exp":1,"gone":1}})");
  context.bank.push_back(entry);
  entry.set_id("b-99999999");
  entry.set_recipe("written by a person");
  context.bank.push_back(entry);
  auto answer = generator->ProposeIdeas(context, Ideas("r0/p/ideas", 3));
  REQUIRE(answer.ok());
  int banked = 0;
  for (const v1::IdeaNode& idea : answer->ideas) {
    auto kernel = generator->WriteKernel(context, Write(idea, 0));
    REQUIRE(kernel.ok());
    if (kernel->kernel.bank_origin().empty()) continue;
    ++banked;
    CHECK(kernel->kernel.bank_origin() == "b-12345678");
    auto recipe = ParseRecipe(kernel->kernel.recipe());
    CHECK(recipe->Has("keep_exp"));
    CHECK(recipe->Get("simd", "bytes", 0) == 32);  // the widest that this device has
  }
  CHECK(banked == 1);
}

TEST_CASE("What came of an optimisation elsewhere weighs the next draw", "[catalogue]") {
  auto generator = MakeCatalogueGenerator();
  v1::KernelNode parent;
  parent.set_id("j/k1");
  parent.set_recipe(R"({"device":"cpu","operation":"softmax","settings":{}})");
  auto count = [&](v1::NodeState state, double credit) {
    int threads = 0;
    for (uint64_t seed = 0; seed < 200; ++seed) {
      Context context = ContextOf("softmax_last", seed);
      v1::IdeaNode tried;
      tried.set_recipe(
          R"({"action":"on","focus":"threads","recipe":{"device":"cpu","operation":"softmax","settings":{"x":1}}})");
      tried.set_state(state);
      tried.set_credit(credit);
      context.tried.assign(3, tried);
      auto answer = generator->ProposeIdeas(context, Ideas("r1", 1, parent));
      REQUIRE(answer.ok());
      if (answer->ideas[0].title().find("threads") != std::string::npos) ++threads;
    }
    return threads;
  };
  const int refuted = count(v1::NODE_STATE_REFUTED, 0.5), praised = count(v1::NODE_STATE_DONE, 3.0);
  CAPTURE(refuted, praised);
  CHECK(praised > refuted + 10);
}

TEST_CASE("An operation that the catalogue does not know is refused with the alternatives", "[catalogue]") {
  auto generator = MakeCatalogueGenerator();
  absl::Status status = generator->Supports(ContextOf("unknown_cumsum"));
  CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
  CHECK_THAT(std::string(status.message()), Catch::Contains("aten::cumsum") && Catch::Contains("--generator openai"));
}

TEST_CASE("Recipes keep their rules through every switch", "[catalogue]") {
  for (const std::string& graph : testing::GraphNames()) {
    auto spec = Recognise(LoadGraph(graph).description);
    if (!spec.ok()) continue;
    v1::DeviceInfo device;
    device.set_kind(v1::DEVICE_KIND_CPU);
    auto family = catalogue::FindFamily(*spec, device);
    REQUIRE(family.ok());
    const auto list = (*family)->Optimisations(*spec, device);
    CAPTURE(graph);
    for (const auto& a : list) {
      CHECK(!a.title.empty());
      CHECK(!a.description.empty());
      for (const auto& parameter : a.parameters) {
        CHECK(std::set<int64_t>(parameter.values.begin(), parameter.values.end()).count(parameter.usual) == 1);
        CHECK(std::set<int64_t>(parameter.values.begin(), parameter.values.end()).count(parameter.safe) == 1);
      }
      for (const auto& b : list) {
        catalogue::Recipe recipe;
        SwitchOn(list, a.id, &recipe);
        SwitchOn(list, b.id, &recipe);
        CHECK(CheckRecipe(list, recipe) == "");
        CHECK(recipe.Has(b.id));
        CHECK(Normalise(list, recipe) == recipe);
        SwitchOff(list, a.id, &recipe);
        CHECK(CheckRecipe(list, recipe) == "");
        CHECK(!recipe.Has(a.id));
      }
    }
  }
}

TEST_CASE("Recipes survive the way through JSON, and nonsense is refused", "[catalogue]") {
  catalogue::Recipe recipe{"softmax", "cpu", {{"simd", 1}, {"simd.bytes", 64}}};
  auto parsed = ParseRecipe(ToJson(recipe));
  REQUIRE(parsed.ok());
  CHECK(*parsed == recipe);
  for (const char* text :
       {"", "null", "[]", "{", R"({"operation":1,"settings":{}})", R"({"operation":"x","settings":{"a":"b"}})"}) {
    CHECK(!ParseRecipe(text).ok());
  }
}

TEST_CASE("Float literals read back to the same float", "[catalogue]") {
  CHECK(catalogue::FloatLiteral(1) == "1.0f");
  CHECK(catalogue::FloatLiteral(-0.5) == "(-0.5f)");
  CHECK(catalogue::FloatLiteral(1e-5) == "9.99999975e-06f");
  CHECK(catalogue::FloatLiteral(1e300) == "__builtin_inff()");
}

}  // namespace
}  // namespace grove::generate
