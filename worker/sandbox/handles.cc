#include "worker/sandbox/handles.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cerrno>

#include "common/base/files.h"

namespace grove::sandbox {

absl::Status MakePipe(Fd* read_end, Fd* write_end) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return ErrnoStatus(errno, "cannot make a pipe");
  read_end->Set(fds[0]);
  write_end->Set(fds[1]);
  return absl::OkStatus();
}

bool Gone(int pidfd) {
  pollfd one{pidfd, POLLIN, 0};
  return pidfd < 0 || poll(&one, 1, 0) > 0;
}

int PidfdOpen(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

void PidfdKill(int pidfd, int signal) {
  if (pidfd >= 0) syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0);
}

absl::StatusOr<int> MemfdWith(absl::string_view content) {
  Fd fd(memfd_create("grove", MFD_CLOEXEC));
  if (fd.get() < 0) return ErrnoStatus(errno, "cannot make a memfd");
  if (write(fd.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size()) ||
      lseek(fd.get(), 0, SEEK_SET) != 0) {
    return ErrnoStatus(errno, "cannot fill a memfd");
  }
  return fd.release();
}

absl::StatusOr<std::string> TextOf(int fd) {
  std::string text(65536, '\0');
  const ssize_t n = pread(fd, text.data(), text.size(), 0);
  if (n <= 0 || n == static_cast<ssize_t>(text.size()))
    return absl::InternalError("cannot read what a descriptor holds: nothing, or too much");
  text.resize(static_cast<size_t>(n));
  return text;
}

}  // namespace grove::sandbox
