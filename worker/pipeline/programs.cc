#include "worker/pipeline/programs.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/version.h"

namespace grove::worker {

std::string SetupLibexec(const WorkerPaths& paths) { return absl::StrCat(paths.state_dir, "/libexec/grove"); }

absl::StatusOr<std::string> FindProgram(const WorkerPaths& paths, const std::string& name) {
  if (!paths.state_dir.empty()) {
    const std::string folder = SetupLibexec(paths);
    const auto stamp = ReadFile(absl::StrCat(folder, "/", kSetupStamp), 100);
    const std::string built = absl::StrCat(folder, "/", name);
    if (stamp.ok() && *stamp == kVersion && access(built.c_str(), X_OK) == 0) return built;
  }
  const std::string installed = absl::StrCat(paths.libexec_dir, "/", name);
  if (access(installed.c_str(), X_OK) == 0) return installed;
  return absl::NotFoundError(absl::StrCat(name, " is not there (looked in ", paths.libexec_dir,
                                          paths.state_dir.empty() ? "" : absl::StrCat(" and ", SetupLibexec(paths)),
                                          "); `grove-worker setup` builds it against this machine's PyTorch"));
}

}  // namespace grove::worker
