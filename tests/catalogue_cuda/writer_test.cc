#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coordinator/generate/catalogue/family.h"
#include "tests/catalogue_cuda/cases.h"
#include "tests/catalogue_cuda/sample.h"

namespace grove::generate::catalogue {
namespace {

v1::DeviceInfo Device(const std::string& arch, int multiprocessors) {
  v1::DeviceInfo device;
  device.set_kind(v1::DEVICE_KIND_CUDA);
  device.set_arch(arch);
  device.set_multiprocessors(multiprocessors);
  return device;
}

TEST_CASE("Every sampled recipe of every CUDA family is valid and can be written", "[catalogue_cuda]") {
  const auto device = GENERATE(Device("sm_80", 108), Device("sm_89", 142), Device("sm_90", 132), Device("sm_90a", 132),
                               Device("sm_120", 188), Device("", 0));
  CAPTURE(device.arch());
  for (const Case& c : CudaCases()) {
    CAPTURE(c.name);
    const auto family = FindFamily(c.spec, device);
    REQUIRE(family.ok());
    const std::vector<Optimisation> list = (*family)->Optimisations(c.spec, device);
    std::vector<Recipe> recipes;
    for (const auto& start : (*family)->Starts(c.spec, device)) recipes.push_back(start.recipe);
    REQUIRE_FALSE(recipes.empty());
    CHECK(recipes.front().settings.empty());  // the plainest comes first
    for (uint64_t seed = 0; seed < 40; ++seed) recipes.push_back(RandomRecipe(list, seed));
    for (const Recipe& recipe : recipes) {
      CAPTURE(ToJson(recipe));
      CHECK(CheckRecipe(list, recipe) == "");
      const auto source = (*family)->Write(c.spec, device, recipe);
      REQUIRE(source.ok());
      CHECK(absl::StartsWith(source->text, "//"));
      CHECK(absl::StrContains(source->text, "GROVE_KERNEL(args)"));
      CHECK(absl::StrContains(source->text, "cudaGetLastError()"));
      CHECK_FALSE(absl::StrContains(source->text, "$"));
      CHECK_FALSE(absl::StrContains(source->text, "Synchronize"));
      const auto again = (*family)->Write(c.spec, device, recipe);
      CHECK(again->text == source->text);
    }
  }
}

TEST_CASE("Optimisations are well formed: values hold the usual and the safe one, references resolve",
          "[catalogue_cuda]") {
  const std::set<std::string> categories = {"memory", "latency", "precision", "compute", "parallelism", "control"};
  for (const Case& c : CudaCases()) {
    CAPTURE(c.name);
    const v1::DeviceInfo device = Device("sm_90", 132);
    const auto list = (*FindFamily(c.spec, device))->Optimisations(c.spec, device);
    std::set<std::string> ids;
    for (const Optimisation& o : list) {
      CAPTURE(o.id);
      CHECK(ids.insert(o.id).second);
      CHECK(categories.count(o.category) == 1);
      for (const Parameter& p : o.parameters) {
        CAPTURE(p.name);
        CHECK(std::count(p.values.begin(), p.values.end(), p.usual) == 1);
        CHECK(std::count(p.values.begin(), p.values.end(), p.safe) == 1);
      }
      for (const std::string& other : o.needs) CHECK(Find(list, other) != nullptr);
      Recipe recipe;
      SwitchOn(list, o.id, &recipe);
      CHECK(CheckRecipe(list, recipe) == "");
    }
  }
}

TEST_CASE("Instructions that only some chips have are offered only there", "[catalogue_cuda]") {
  const std::vector<Case> cases = CudaCases();
  const auto matmul = std::find_if(cases.begin(), cases.end(), [](const Case& c) { return c.name == "matmul"; });
  const auto offers = [&](const v1::DeviceInfo& device, const char* id) {
    return Find((*FindFamily(matmul->spec, device))->Optimisations(matmul->spec, device), id) != nullptr;
  };
  CHECK(offers(Device("sm_90", 132), "wgmma"));
  CHECK_FALSE(offers(Device("sm_89", 142), "wgmma"));
  CHECK_FALSE(offers(Device("sm_100", 148), "wgmma"));
  CHECK(offers(Device("sm_89", 142), "tf32_cores"));
  CHECK_FALSE(offers(Device("sm_75", 40), "tf32_cores"));
}

TEST_CASE("A spec with another dtype is refused with the argument and its dtype", "[catalogue_cuda]") {
  Case c = CudaCases().front();
  c.spec.args[0].set_dtype("float16");
  const auto family = FindFamily(c.spec, Device("sm_90", 132));
  REQUIRE_FALSE(family.ok());
  CHECK(absl::StrContains(family.status().message(), "argument 0 is float16"));
}

}  // namespace
}  // namespace grove::generate::catalogue
