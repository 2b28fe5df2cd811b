// Compiles sampled sources of the CUDA catalogue with nvcc: catalogue_cuda_compile SEED CASE...
// Exit code 77 (skipped) where there is no nvcc.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "coordinator/generate/catalogue/family.h"
#include "tests/catalogue_cuda/cases.h"
#include "tests/catalogue_cuda/sample.h"

int main(int argc, char** argv) {
  using namespace grove::generate;
  using namespace grove::generate::catalogue;
  namespace fs = std::filesystem;
  const std::string nvcc = std::system("command -v nvcc >/dev/null 2>&1") == 0 ? "nvcc" : "/usr/local/cuda/bin/nvcc";
  if (nvcc != "nvcc" && !fs::exists(nvcc)) {
    std::printf("skipped: no nvcc\n");
    return 77;
  }
  const uint64_t seed = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  const std::set<std::string> wanted(argv + std::min(argc, 2), argv + argc);
  std::string folder = (fs::temp_directory_path() / "grove-catalogue-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;
  int failures = 0, compiled = 0;
  for (const Case& c : CudaCases()) {
    if (wanted.count(c.name) == 0) continue;
    // The newest chip has every optimisation; the other sees what is left without clusters and wgmma.
    for (const auto& [arch, target] : {std::pair<std::string, std::string>{"sm_90", "90a"}, {"sm_89", "89"}}) {
      grove::v1::DeviceInfo device;
      device.set_kind(grove::v1::DEVICE_KIND_CUDA);
      device.set_arch(arch);
      device.set_multiprocessors(132);
      const KernelFamily* const family = *FindFamily(c.spec, device);
      const auto list = family->Optimisations(c.spec, device);
      std::vector<Recipe> recipes;
      const auto starts = family->Starts(c.spec, device);
      recipes.push_back(starts[std::min<size_t>(1, starts.size() - 1)].recipe);
      recipes.push_back(RandomRecipe(list, seed));
      for (const Recipe& recipe : recipes) {
        const auto source = family->Write(c.spec, device, recipe);
        const std::string file = absl::StrCat(folder, "/kernel.cu"), log = folder + "/log";
        std::ofstream(file) << (source.ok() ? source->text : source.status().ToString());
        const std::string command =
            absl::StrCat(nvcc, " -cubin -O3 -std=c++17 -gencode=arch=compute_", target, ",code=sm_", target, " -I",
                         GROVE_KERNEL_INCLUDE, " -o ", folder, "/kernel.cubin ", file, " >", log, " 2>&1");
        ++compiled;
        if (std::system(command.c_str()) == 0) continue;
        ++failures;
        std::string text;
        std::getline(std::ifstream(log), text, '\0');
        std::printf("%s on %s, %s\n%s\n", c.name.c_str(), arch.c_str(), ToJson(recipe).c_str(), text.c_str());
      }
    }
  }
  fs::remove_all(folder);
  std::printf("%d compiled, %d failed\n", compiled, failures);
  return failures == 0 && compiled > 0 ? 0 : 1;
}
