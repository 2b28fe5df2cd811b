// The file systems that a sandbox has to itself (/tmp and /dev/shm, each a tmpfs of a fixed size), seen from outside by
// descriptors of their roots.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace grove::sandbox {

// The mounted tmpfs of exactly this size at `path`, or -1 while it is not there.
int OpenSandboxTmpfs(const std::string& path, int64_t size);

// Bytes in use, each file as one block at least; 0 for -1.
int64_t TmpfsUsed(int fd);
double TmpfsShare(int fd);  // of its blocks in use, 0 to 1
bool TmpfsFull(int fd);

// Writes a file that is not there yet, and the folders above it. Never follows a link.
absl::Status WriteBelow(int dir_fd, const std::string& path, absl::string_view content);
// A regular file. Never follows a link. NOT_FOUND, RESOURCE_EXHAUSTED.
absl::StatusOr<std::string> ReadBelow(int dir_fd, const std::string& path, int64_t max_bytes);

}  // namespace grove::sandbox
