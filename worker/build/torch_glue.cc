#include "worker/build/torch_glue.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/hash.h"
#include "common/base/status_macros.h"
#include "common/base/version.h"

namespace grove::build {
namespace {

// One file against PyTorch's headers takes 20 s; a machine that is overrun gets ten times that.
constexpr absl::Duration kMakeTimeout = absl::Seconds(300);

}  // namespace

absl::StatusOr<std::string> TorchGlueKey(const TorchGlueOptions& options) {
  namespace fs = std::filesystem;
  const std::string folder = absl::StrCat(options.libexec_dir, "/torch_lite");
  std::error_code error;
  std::vector<std::string> files = {absl::StrCat(options.libexec_dir, "/torch_lite_build.py")};
  for (const auto& entry : fs::recursive_directory_iterator(folder, error)) {
    if (entry.is_regular_file(error)) files.push_back(entry.path().string());
  }
  if (error || files.size() < 2) return absl::NotFoundError(absl::StrCat("no small headers in ", folder));
  std::sort(files.begin(), files.end());
  std::string all;
  const auto add = [&](absl::string_view part) { absl::StrAppend(&all, part.size(), ":", part); };
  // Versions and not places: the object has no path in it, and setup may find the same compiler by another name.
  for (absl::string_view part :
       {absl::string_view(kVersion), absl::string_view(options.python.version),
        absl::string_view(options.python.torch_version), absl::string_view(options.cxx.version),
        absl::string_view(options.cuda_home.empty() ? "cpu" : "cuda")}) {
    add(part);
  }
  for (const std::string& file : files) {
    GROVE_ASSIGN_OR_RETURN(std::string text, ReadFile(file, 1 << 20));
    add(file.substr(options.libexec_dir.size()));
    add(text);
  }
  return Sha256Hex(all);
}

absl::StatusOr<std::string> FindOrMakeTorchGlue(const TorchGlueOptions& options,
                                                const std::vector<std::string>& folders,
                                                const std::function<void()>& making) {
  GROVE_ASSIGN_OR_RETURN(const std::string key, TorchGlueKey(options));
  for (const std::string& folder : folders) {
    std::string path = absl::StrCat(folder, "/", key, ".o");
    if (access(path.c_str(), R_OK) == 0) return path;
  }
  if (making) making();
  const std::string& folder = folders.back();
  GROVE_RETURN_IF_ERROR(MakeDirs(folder));
  std::string path = absl::StrCat(folder, "/", key, ".o"), unfinished = absl::StrCat(path, ".", getpid(), ".tmp");
  const std::string python_folder = options.python.path.substr(0, options.python.path.rfind('/'));
  const std::string cxx_folder = options.cxx.path.substr(0, options.cxx.path.rfind('/'));
  std::vector<std::string> env = {
      absl::StrCat("PATH=", python_folder, ":", cxx_folder, ":/usr/local/bin:/usr/bin:/bin"),
      absl::StrCat("CXX=", options.cxx.path), "LC_ALL=C.UTF-8", "PYTHONDONTWRITEBYTECODE=1",
      absl::StrCat("HOME=", folder)};
  if (!options.cuda_home.empty()) env.push_back(absl::StrCat("CUDA_HOME=", options.cuda_home));
  if (const char* libraries = getenv("LD_LIBRARY_PATH"); libraries != nullptr) {
    env.push_back(absl::StrCat("LD_LIBRARY_PATH=", libraries));
  }
  GROVE_ASSIGN_OR_RETURN(
      device::ToolOutput made,
      device::RunTool({options.python.path, absl::StrCat(options.libexec_dir, "/torch_lite_build.py"),
                       absl::StrCat(options.libexec_dir, "/torch_lite"), unfinished},
                      env, kMakeTimeout));
  if (made.exit_code != 0 || rename(unfinished.c_str(), path.c_str()) != 0) {
    unlink(unfinished.c_str());
    const std::string said = absl::StrCat(made.err, made.out);
    return absl::InternalError(absl::StrCat("the glue of the small headers could not be made (exit code ",
                                            made.exit_code,
                                            "): ", said.substr(said.size() > 1000 ? said.size() - 1000 : 0)));
  }
  return path;
}

}  // namespace grove::build
