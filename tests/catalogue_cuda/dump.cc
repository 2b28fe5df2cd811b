// Writes sources of the CUDA catalogue, with a manifest for tests/gpu/catalogue/run.py:
//   catalogue_cuda_dump FOLDER [--arch sm_90] [--multiprocessors 132] [--random N] [--seed S] [--case NAME]...
//   [--large]
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "coordinator/generate/catalogue/family.h"
#include "nlohmann/json.hpp"
#include "tests/catalogue_cuda/cases.h"
#include "tests/catalogue_cuda/sample.h"

int main(int argc, char** argv) {
  using namespace grove::generate;
  using namespace grove::generate::catalogue;
  std::string folder, arch = "sm_90";
  int multiprocessors = 132, random = 0;
  uint64_t seed = 1;
  bool large_only = false, small_only = false, starts_only = false;
  std::set<std::string> wanted;
  std::vector<std::string> explicit_recipes;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    auto value = [&]() -> std::string { return i + 1 < argc ? argv[++i] : ""; };
    if (arg == "--arch")
      arch = value();
    else if (arg == "--multiprocessors")
      multiprocessors = std::atoi(value().c_str());
    else if (arg == "--random")
      random = std::atoi(value().c_str());
    else if (arg == "--seed")
      seed = std::strtoull(value().c_str(), nullptr, 10);
    else if (arg == "--case")
      wanted.insert(value());
    else if (arg == "--recipe")
      explicit_recipes.push_back(value());  // "a,b,b.p=3" on top of nothing
    else if (arg == "--large")
      large_only = true;
    else if (arg == "--small")
      small_only = true;
    else if (arg == "--no-starts")
      starts_only = true;
    else
      folder = arg;
  }
  if (folder.empty()) {
    std::fprintf(
        stderr,
        "usage: catalogue_cuda_dump FOLDER [--arch A] [--random N] [--case NAME]... [--recipe R]... [--large]\n");
    return 2;
  }
  grove::v1::DeviceInfo device;
  device.set_kind(grove::v1::DEVICE_KIND_CUDA);
  device.set_arch(arch);
  device.set_multiprocessors(multiprocessors);
  nlohmann::json manifest = {{"cases", nlohmann::json::array()}, {"kernels", nlohmann::json::array()}};
  int failures = 0;
  for (const Case& c : CudaCases()) {
    if (!wanted.empty() && wanted.count(c.name) == 0) continue;
    if (large_only && !c.large) continue;
    if (small_only && c.large) continue;
    const auto family = FindFamily(c.spec, device);
    if (!family.ok()) {
      std::cerr << c.name << ": " << family.status() << "\n";
      ++failures;
      continue;
    }
    nlohmann::json args = nlohmann::json::array();
    for (const auto& type : c.spec.args) args.push_back(std::vector<int64_t>(type.shape().begin(), type.shape().end()));
    manifest["cases"].push_back({{"name", c.name},
                                 {"args", args},
                                 {"output", c.spec.output_shape},
                                 {"reference", c.reference},
                                 {"inputs", c.inputs}});
    std::vector<Recipe> recipes;
    if (!starts_only) {
      for (const auto& start : (*family)->Starts(c.spec, device)) recipes.push_back(start.recipe);
    }
    const std::vector<Optimisation> list = (*family)->Optimisations(c.spec, device);
    for (const std::string& text : explicit_recipes) {
      Recipe recipe;
      for (const auto& part : absl::StrSplit(text, ',')) {
        const std::vector<std::string> kv = absl::StrSplit(part, '=');
        if (kv.size() == 1 && !kv[0].empty()) SwitchOn(list, kv[0], &recipe);
        if (kv.size() == 2) recipe.settings[kv[0]] = std::atoll(kv[1].c_str());
      }
      if (const std::string wrong = CheckRecipe(list, recipe); !wrong.empty()) {
        std::cerr << c.name << ": " << text << ": " << wrong << "\n";
        continue;
      }
      recipes.push_back(recipe);
    }
    for (int i = 0; i < random; ++i) recipes.push_back(RandomRecipe(list, seed * 1000 + i));
    std::set<std::string> seen;
    int number = 0;
    for (const Recipe& recipe : recipes) {
      const std::string json = ToJson(recipe);
      if (!seen.insert(json).second) continue;
      const auto source = (*family)->Write(c.spec, device, recipe);
      if (!source.ok()) {
        std::cerr << c.name << " " << json << ": " << source.status() << "\n";
        ++failures;
        continue;
      }
      const std::string file = absl::StrCat(c.name, "_", number++, ".cu");
      std::ofstream(folder + "/" + file) << source->text;
      manifest["kernels"].push_back({{"case", c.name},
                                     {"file", file},
                                     {"recipe", nlohmann::json::parse(json)["settings"]},
                                     {"flags", source->build_flags}});
    }
  }
  std::ofstream(folder + "/manifest.json") << manifest.dump(1) << "\n";
  std::cerr << manifest["kernels"].size() << " kernels, " << failures << " failures\n";
  return failures == 0 ? 0 : 1;
}
