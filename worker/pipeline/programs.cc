#include "worker/pipeline/programs.h"

#include <unistd.h>

#include <cstdlib>

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

}  // namespace grove::worker
