// Where the worker's helper programs lie.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "worker/pipeline/pipeline.h"

namespace grove::worker {

// <state_dir>/libexec/grove when `grove-worker setup` built it there for this version of grove, else libexec_dir.
// NOT_FOUND says to run `grove-worker setup`.
absl::StatusOr<std::string> FindProgram(const WorkerPaths& paths, const std::string& name);

// The folder that setup fills, and the file in it whose text is the version it was built for.
std::string SetupLibexec(const WorkerPaths& paths);
inline constexpr char kSetupStamp[] = "built-for-version";

}  // namespace grove::worker
