#include "worker/pipeline/programs.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/version.h"

namespace grove::worker {

std::string RuntimeFolder() {
  if (const char* runtime = getenv("GROVE_RUNTIME"); runtime != nullptr && *runtime != 0) return runtime;
  // The XDG base directory specification ignores relative paths.
  if (const char* data = getenv("XDG_DATA_HOME"); data != nullptr && *data == '/') {
    return absl::StrCat(data, "/grove/runtime");
  }
  const char* home = getenv("HOME");
  return absl::StrCat(home != nullptr ? home : "", "/.local/share/grove/runtime");
}

absl::StatusOr<std::string> FindProgram(const WorkerPaths& paths, const std::string& name) {
  const std::string installed = absl::StrCat(paths.libexec_dir, "/", name);
  const std::string folder = absl::StrCat(RuntimeFolder(), "/libexec/grove");
  const std::string built = absl::StrCat(folder, "/", name);
  const bool has_installed = access(installed.c_str(), X_OK) == 0;
  const auto stamp = ReadFile(absl::StrCat(folder, "/", kSetupStamp), 100);
  const bool has_built = stamp.ok() && *stamp == kVersion && access(built.c_str(), X_OK) == 0;
  const bool named = getenv("GROVE_RUNTIME") != nullptr;
  if (has_built && (named || !has_installed)) return built;
  if (has_installed) return installed;
  std::string other;
  if (stamp.ok() && *stamp != kVersion) other = absl::StrCat(" (which was built for version ", *stamp, ")");
  return absl::NotFoundError(absl::StrCat(name, " is not there (looked in ", paths.libexec_dir, " and ", folder, other,
                                          "); `grove-worker setup` builds it against this machine's PyTorch"));
}

std::vector<std::string> ProgramEnvironment(bool cuda, int threads, const device::Tools& tools) {
  std::vector<std::string> env = {"HOME=/tmp",
                                  "TMPDIR=/tmp",
                                  "USER=grove",
                                  "LC_ALL=C.UTF-8",
                                  "PYTHONDONTWRITEBYTECODE=1",
                                  "PYTHONUNBUFFERED=1",
                                  absl::StrCat("OMP_NUM_THREADS=", threads),
                                  "OMP_WAIT_POLICY=passive"};
  std::string path = "/usr/local/bin:/usr/bin:/bin";
  if (cuda) {
    // Triton and torch.compile look for the toolkit by these.
    if (tools.nvcc.has_value()) {
      const std::string& home = tools.nvcc->home;
      env.push_back(absl::StrCat("CUDA_HOME=", home));
      env.push_back(absl::StrCat("CUDA_PATH=", home));
      // Its own is in Triton's package; another one where somebody asks for the toolkit's.
      if (getenv("TRITON_PTXAS_PATH") != nullptr) env.push_back(absl::StrCat("TRITON_PTXAS_PATH=", home, "/bin/ptxas"));
      path = absl::StrCat(home, "/bin:", path);
    }
    // A kernel is loaded whole when its object is, and not at its first, timed, launch.
    env.push_back("CUDA_MODULE_LOADING=EAGER");
    env.push_back("CUDA_DEVICE_ORDER=PCI_BUS_ID");
  }
  if (const char* libraries = getenv("LD_LIBRARY_PATH"); libraries != nullptr) {
    env.push_back(absl::StrCat("LD_LIBRARY_PATH=", libraries));
  }
  if (tools.cxx.has_value()) {
    env.push_back(absl::StrCat("CXX=", tools.cxx->path));
    env.push_back(absl::StrCat("CC=", tools.cxx->c_path));
    absl::StrAppend(&path, ":", std::filesystem::path(tools.cxx->path).parent_path().string());
  }
  env.push_back(absl::StrCat("PATH=", path));
  return env;
}

}  // namespace grove::worker
