// Every kernel that the catalogue can write for the CPU must be right: recipes are drawn, compiled many to a file, run,
// and compared with what torch computes in double precision.
#include <dlfcn.h>
#include <grove/kernel.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <set>

#include "coordinator/generate/catalogue/family.h"
#include "coordinator/generate/operation.h"
#include "tests/catalogue/graph_fixture.h"

namespace grove::generate::catalogue {
namespace {

using testing::GraphFixture;

uint64_t Seed() {
  const char* text = std::getenv("GROVE_TEST_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 20260521;
}

// Drawn recipes per graph beside the starts. The default keeps the suite quick; GROVE_TEST_RECIPES=50 is thorough.
int Recipes() {
  const char* text = std::getenv("GROVE_TEST_RECIPES");
  return text != nullptr ? std::atoi(text) : 3;
}

v1::DeviceInfo Cpu() {
  v1::DeviceInfo device;
  device.set_kind(v1::DEVICE_KIND_CPU);
  return device;
}

Recipe RandomRecipe(const std::vector<Optimisation>& list, std::mt19937_64* random) {
  Recipe recipe;
  for (const Optimisation& each : list) {
    if ((*random)() % 2 == 0) SwitchOn(list, each.id, &recipe);
  }
  for (const Optimisation& each : list) {
    if (!recipe.Has(each.id)) continue;
    for (const Parameter& parameter : each.parameters) {
      recipe.settings[each.id + "." + parameter.name] = parameter.values[(*random)() % parameter.values.size()];
    }
  }
  return recipe;
}

struct Kernel {
  std::string graph;
  Recipe recipe;
  std::string text;
  bool approximate = false;
};

using Entry = int (*)(const grove_args*);

// The sources in one file, each in a namespace of its own with its own entry point.
void Compile(const std::vector<Kernel>& kernels, const std::string& stem) {
  std::ofstream file(stem + ".cc");
  file << "#include <grove/kernel.h>\n#include <math.h>\n#include <omp.h>\n#include <stdint.h>\n#include <stdlib.h>\n"
          "#include <string.h>\n#undef GROVE_KERNEL\n";
  for (size_t i = 0; i < kernels.size(); ++i) {
    file << "#define GROVE_KERNEL(args) extern \"C\" int entry_" << i << "(const grove_args* args)\nnamespace k" << i
         << " {\n"
         << kernels[i].text << "}\n#undef GROVE_KERNEL\n#undef VB\n#undef LANES\n#undef GROVE_VECTOR_BYTES\n"
         << "#undef GROVE_EXP_DEGREE\n#undef GROVE_UNROLL_K\n";
  }
  file.close();
  const std::string command =
      "g++ -O1 -march=native -fopenmp -fPIC -shared -Wall -Werror -Wno-unknown-pragmas -Wno-psabi "
      "-Wno-unused-function -Wno-unused-variable -Wno-unused-value -I" GROVE_KERNEL_INCLUDE " -o " +
      stem + ".so " + stem + ".cc 2> " + stem + ".log";
  const int status = std::system(command.c_str());
  std::ifstream log(stem + ".log");
  const std::string text((std::istreambuf_iterator<char>(log)), std::istreambuf_iterator<char>());
  INFO(text.substr(0, 4000));
  REQUIRE(status == 0);
}

// Runs one kernel on the fixture's inputs; the outputs are surrounded by guards.
void Check(const GraphFixture& fixture, const Kernel& kernel, Entry entry, int threads) {
  const v1::ProblemDescription& d = fixture.description;
  std::vector<v1::TensorType> types(d.inputs().begin(), d.inputs().end());
  types.insert(types.end(), d.parameters().begin(), d.parameters().end());
  std::vector<std::vector<float>> data;
  std::vector<std::vector<int64_t>> shapes, strides;
  std::vector<DLTensor> inputs;
  auto describe = [&](const v1::TensorType& type, void* at) {
    shapes.emplace_back(type.shape().begin(), type.shape().end());
    strides.emplace_back(shapes.back().size(), 1);
    for (size_t k = shapes.back().size(); k-- > 1;) strides.back()[k - 1] = strides.back()[k] * shapes.back()[k];
    DLTensor tensor{};
    tensor.data = at;
    tensor.device = {1, 0};
    tensor.ndim = static_cast<int32_t>(shapes.back().size());
    tensor.dtype = {2, 32, 1};
    if (type.dtype() == "int64") tensor.dtype = {0, 64, 1};
    tensor.shape = shapes.back().data();
    tensor.strides = strides.back().data();
    return tensor;
  };
  shapes.reserve(types.size() + 1);
  strides.reserve(types.size() + 1);
  for (size_t arg = 0; arg < types.size(); ++arg) {
    int64_t n = 1;
    for (int64_t size : types[arg].shape()) n *= size;
    data.emplace_back(n);
    for (int64_t i = 0; i < n; ++i) data.back()[i] = testing::InputValue(i, static_cast<int>(arg), types[arg].name());
    inputs.push_back(describe(types[arg], data.back().data()));
  }
  constexpr size_t kGuard = 64;
  const size_t n = fixture.expected.size();
  std::vector<float> result(n + 2 * kGuard, -777.25f);
  DLTensor output = describe(d.outputs(0), result.data() + kGuard);
  const std::vector<std::vector<float>> before = data;
  grove_args args{GROVE_KERNEL_ABI,
                  sizeof(grove_args),
                  static_cast<int32_t>(inputs.size()),
                  1,
                  inputs.data(),
                  &output,
                  nullptr,
                  threads,
                  0};
  INFO(fixture.name << " " << ToJson(kernel.recipe) << " threads " << threads);
  REQUIRE(entry(&args) == 0);
  CHECK(data == before);
  for (size_t i = 0; i < kGuard; ++i) {
    if (result[i] != -777.25f || result[n + kGuard + i] != -777.25f) FAIL("wrote outside the output");
  }
  // Errors are judged against the size of the result, as rounding of sums goes by their terms and not by the total.
  // The inputs are of size 1, so a total near 0 (mean_all) is not held to its own size.
  double scale = 0.01;
  for (double value : fixture.expected) scale = std::max(scale, std::fabs(value));
  double tolerance = kernel.approximate ? 3e-4 : 5e-6;
  // 0.1 x + 1000 in float is off by half an ulp of 1000, 3e-5, of a spread of 0.06: no kernel can know better.
  if (kernel.graph == "layer_norm_shifted") tolerance = 2e-3;
  size_t wrong = 0, worst = 0;
  double worst_error = 0;
  for (size_t i = 0; i < n; ++i) {
    const double error = std::fabs(result[kGuard + i] - fixture.expected[i]);
    if (!(error <= tolerance * scale)) {
      ++wrong;
      if (!(error <= worst_error)) worst = i, worst_error = error;
    }
  }
  INFO(wrong << " of " << n << " wrong, worst at " << worst << ": expected " << fixture.expected[worst] << ", got "
             << result[kGuard + worst]);
  CHECK(wrong == 0);
  // A wrong number of arguments is refused.
  args.num_inputs += 1;
  CHECK(entry(&args) != 0);
}

void CheckGraphs(const std::function<bool(const OpSpec&)>& wanted) {
  const uint64_t seed = Seed();
  INFO("seed " << seed);
  std::vector<Kernel> kernels;
  std::vector<GraphFixture> fixtures;
  for (const std::string& name : testing::GraphNames()) {
    GraphFixture fixture = testing::LoadGraph(name);
    if (fixture.expected.empty()) continue;
    auto spec = Recognise(fixture.description);
    INFO(name << ": " << spec.status());
    REQUIRE(spec.ok());
    if (!wanted(*spec)) continue;
    auto family = FindFamily(*spec, Cpu());
    INFO(name << ": " << family.status());
    REQUIRE(family.ok());
    const std::vector<Optimisation> list = (*family)->Optimisations(*spec, Cpu());
    std::mt19937_64 random(seed ^ std::hash<std::string>{}(name));
    std::vector<Recipe> recipes;
    for (const KernelFamily::Start& start : (*family)->Starts(*spec, Cpu())) recipes.push_back(start.recipe);
    // Everything at once, then draws.
    Recipe all;
    for (const Optimisation& each : list) SwitchOn(list, each.id, &all);
    recipes.push_back(all);
    for (int i = 0; i < Recipes(); ++i) recipes.push_back(RandomRecipe(list, &random));
    std::set<std::string> seen;
    for (Recipe& recipe : recipes) {
      if (!seen.insert(ToJson(recipe)).second) continue;
      INFO(name << " " << ToJson(recipe));
      REQUIRE(CheckRecipe(list, recipe).empty());
      auto source = (*family)->Write(*spec, Cpu(), recipe);
      REQUIRE(source.ok());
      kernels.push_back(Kernel{name, recipe, source->text, recipe.Has("short_poly")});
      fixtures.push_back(fixture);
    }
  }
  REQUIRE(!kernels.empty());
  char folder[] = "/tmp/grove-kernels-XXXXXX";
  REQUIRE(mkdtemp(folder) != nullptr);
  // One compiler run has some forty kernels: the cost of starting it is shared, and its memory stays small.
  constexpr size_t kBatch = 40;
  for (size_t from = 0; from < kernels.size(); from += kBatch) {
    const std::vector<Kernel> batch(kernels.begin() + from, kernels.begin() + std::min(kernels.size(), from + kBatch));
    const std::string stem = std::string(folder) + "/batch" + std::to_string(from);
    Compile(batch, stem);
    void* library = dlopen((stem + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
    INFO((library == nullptr ? dlerror() : ""));
    REQUIRE(library != nullptr);
    for (size_t i = 0; i < batch.size(); ++i) {
      auto entry = reinterpret_cast<Entry>(dlsym(library, ("entry_" + std::to_string(i)).c_str()));
      REQUIRE(entry != nullptr);
      for (int threads : {1, 3}) Check(fixtures[from + i], batch[i], entry, threads);
    }
    // Threads of the OpenMP runtime keep thread-local buffers of the library: it stays loaded.
  }
  std::filesystem::remove_all(folder);
}

TEST_CASE("Elementwise kernels of any recipe compute what torch computes", "[kernels]") {
  CheckGraphs([](const OpSpec& spec) { return spec.operation == "elementwise"; });
}
TEST_CASE("Softmax kernels of any recipe compute what torch computes", "[kernels]") {
  CheckGraphs([](const OpSpec& spec) { return spec.rows && !spec.norm && !spec.reduce; });
}
TEST_CASE("Normalisation kernels of any recipe compute what torch computes", "[kernels]") {
  CheckGraphs([](const OpSpec& spec) { return spec.norm.has_value(); });
}
TEST_CASE("Reduction kernels of any recipe compute what torch computes", "[kernels]") {
  CheckGraphs([](const OpSpec& spec) { return spec.reduce.has_value(); });
}
TEST_CASE("Matrix product kernels of any recipe compute what torch computes", "[kernels]") {
  CheckGraphs([](const OpSpec& spec) { return spec.matmul.has_value(); });
}
TEST_CASE("Convolution and pooling kernels of any recipe compute what torch computes", "[kernels]") {
  CheckGraphs([](const OpSpec& spec) { return spec.conv2d.has_value() || spec.pool.has_value(); });
}

}  // namespace
}  // namespace grove::generate::catalogue
