// Small file helpers with errors that name the path and the cause.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace grove {

// NOT_FOUND, PERMISSION_DENIED, RESOURCE_EXHAUSTED (larger than max_bytes), or UNKNOWN with errno's text.
absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t max_bytes);

// Writes path + a temporary suffix, fsyncs, renames, fsyncs the folder: after OK the content is durable, and no reader
// ever sees half of it. Links are followed; a device or a pipe is written to as it is. RESOURCE_EXHAUSTED on a full
// disk, NOT_FOUND where the folder is missing, INVALID_ARGUMENT for a folder.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view content, int mode = 0644);

// mkdir -p with mode 0755.
absl::Status MakeDirs(const std::string& path);

// An errno as a Status: the code says what to do, the message is "what: strerror".
absl::Status ErrnoStatus(int error, absl::string_view what);

// Exclusive advisory lock on a file, held until destruction. FAILED_PRECONDITION when another process has it.
class FileLock {
 public:
  static absl::StatusOr<std::unique_ptr<FileLock>> Acquire(const std::string& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace grove
