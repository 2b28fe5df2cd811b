// The few kinds of descriptors that a sandbox is run with.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/fd.h"

namespace grove::sandbox {

// Both ends close on exec.
absl::Status MakePipe(Fd* read_end, Fd* write_end);

int PidfdOpen(pid_t pid);               // -1 where there is no such process
void PidfdKill(int pidfd, int signal);  // nothing for -1
bool Gone(int pidfd);                   // the process has ended; true for -1

// A memfd with `content`, at offset 0.
absl::StatusOr<int> MemfdWith(absl::string_view content);
// The text of a small file, less than 64 KiB, from its beginning.
absl::StatusOr<std::string> TextOf(int fd);

}  // namespace grove::sandbox
