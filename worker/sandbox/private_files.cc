#include "worker/sandbox/private_files.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/files.h"
#include "worker/sandbox/handles.h"

namespace grove::sandbox {

int64_t TmpfsUsed(int fd) {
  struct statfs info {};
  if (fd < 0 || fstatfs(fd, &info) != 0) return 0;
  // Every file counts as one block at least: a flood of empty ones is a flood too.
  return static_cast<int64_t>(std::max<uint64_t>(info.f_blocks - info.f_bfree, info.f_files - info.f_ffree)) *
         info.f_bsize;
}

double TmpfsShare(int fd) {
  struct statfs info {};
  if (fd < 0 || fstatfs(fd, &info) != 0 || info.f_blocks == 0) return 0;
  return static_cast<double>(info.f_blocks - info.f_bfree) / static_cast<double>(info.f_blocks);
}

bool TmpfsFull(int fd) {
  struct statfs info {};
  return fd >= 0 && fstatfs(fd, &info) == 0 && info.f_blocks > 0 &&
         (info.f_bfree == 0 || info.f_files - info.f_ffree > info.f_blocks);
}

int OpenSandboxTmpfs(const std::string& path, int64_t size) {
  Fd fd(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct statfs info {};
  if (fd.get() < 0 || fstatfs(fd.get(), &info) != 0 || info.f_type != TMPFS_MAGIC) return -1;
  const int64_t pages = (size + info.f_bsize - 1) / info.f_bsize;
  if (static_cast<int64_t>(info.f_blocks) != pages) return -1;
  return fd.release();
}

absl::Status WriteBelow(int dir_fd, const std::string& path, absl::string_view content) {
  std::vector<std::string> parts = absl::StrSplit(path, '/', absl::SkipEmpty());
  if (parts.empty()) return absl::InvalidArgumentError("an empty file name");
  if (path[0] == '/') return absl::InvalidArgumentError(absl::StrCat(path, " is not below the folder"));
  std::string folder;
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    absl::StrAppend(&folder, i == 0 ? "" : "/", parts[i]);
    if (mkdirat(dir_fd, folder.c_str(), 0755) != 0 && errno != EEXIST) {
      return ErrnoStatus(errno, absl::StrCat("cannot make ", folder, " in the sandbox"));
    }
  }
  Fd fd(openat(dir_fd, path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (fd.get() < 0) return ErrnoStatus(errno, absl::StrCat("cannot write ", path, " in the sandbox"));
  while (!content.empty()) {
    const ssize_t n = write(fd.get(), content.data(), content.size());
    if (n < 0) return ErrnoStatus(errno, absl::StrCat("cannot write ", path, " in the sandbox"));
    content.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadBelow(int dir_fd, const std::string& path, int64_t max_bytes) {
  struct open_how how {};
  how.flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  Fd fd(static_cast<int>(syscall(SYS_openat2, dir_fd, path.c_str(), &how, sizeof(how))));
  if (fd.get() < 0) return ErrnoStatus(errno, absl::StrCat("cannot open ", path, " in the sandbox"));
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return ErrnoStatus(errno, absl::StrCat("cannot stat ", path));
  if (!S_ISREG(info.st_mode)) return absl::InvalidArgumentError(absl::StrCat(path, " is not a regular file"));
  if (info.st_size > max_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, " has ", info.st_size, " bytes; at most ", max_bytes, " are accepted"));
  }
  std::string content(static_cast<size_t>(info.st_size), '\0');
  size_t have = 0;
  while (have < content.size()) {
    const ssize_t n = read(fd.get(), content.data() + have, content.size() - have);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, absl::StrCat("cannot read ", path));
    if (n == 0) break;
    have += static_cast<size_t>(n);
  }
  content.resize(have);
  return content;
}

}  // namespace grove::sandbox
