// The worker's state folder: who it is, and that nobody else uses it.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/files.h"

namespace grove::worker {

struct StateFolder {
  std::string path;                // absolute
  std::string worker_id;           // "w-" and 8 characters, made at the first start and kept in PATH/worker-id
  std::unique_ptr<FileLock> lock;  // PATH/lock, held while this lives
};

// Creates what is missing. FAILED_PRECONDITION: another worker uses the folder; each needs its own.
absl::StatusOr<StateFolder> OpenStateFolder(const std::string& path);

}  // namespace grove::worker
