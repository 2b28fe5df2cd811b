#include "common/base/files.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/base/fd.h"
#include "common/base/status_macros.h"

namespace grove {
namespace {

constexpr int kPipePatience = 20'000;  // milliseconds without a byte, or a reader
constexpr int kPipeStep = 20;          // milliseconds between looking for one

std::string FolderOf(const std::string& path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

absl::Status WriteAll(int fd, absl::string_view content, const std::string& path) {
  while (!content.empty()) {
    ssize_t n = write(fd, content.data(), content.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      return ErrnoStatus(errno, absl::StrCat("cannot write ", path));
    }
    content.remove_prefix(static_cast<size_t>(n));
  }
  // A device or a pipe has nothing to bring to disk.
  if (fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP) {
    return ErrnoStatus(errno, absl::StrCat("cannot fsync ", path));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ErrnoStatus(int error, absl::string_view what) {
  std::string message = absl::StrCat(what, ": ", strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(message);
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(message);
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::ResourceExhaustedError(message);
    case EEXIST:
      return absl::AlreadyExistsError(message);
    default:
      return absl::UnknownError(message);
  }
}

absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t max_bytes) {
  // Of a pipe that nobody writes to nothing comes: neither opening nor reading may wait for ever.
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return ErrnoStatus(errno, absl::StrCat("cannot stat ", path));
  if (S_ISDIR(info.st_mode)) return absl::InvalidArgumentError(absl::StrCat(path, " is a folder, not a file"));
  if (S_ISREG(info.st_mode) && info.st_size > max_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, " has ", info.st_size, " bytes; at most ", max_bytes, " are accepted"));
  }
  // On the heap: threads of libraries have small stacks (those of the metrics' web server 100 KiB).
  constexpr size_t kStep = 65536;
  // One byte more than there should be: room for the read that finds the end.
  std::string content(S_ISREG(info.st_mode) ? static_cast<size_t>(info.st_size) + 1 : kStep, '\0');
  size_t have = 0;
  for (;;) {
    if (have == content.size()) content.resize(have + std::max(kStep, have));
    ssize_t n = read(fd.get(), content.data() + have, content.size() - have);
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) {
        pollfd one{fd.get(), POLLIN, 0};
        if (poll(&one, 1, kPipePatience) != 0) continue;
        return absl::DeadlineExceededError(
            absl::StrCat(path, " is a pipe to which nothing was written for ", kPipePatience / 1000, " s"));
      }
      return ErrnoStatus(errno, absl::StrCat("cannot read ", path));
    }
    if (n == 0) break;
    have += static_cast<size_t>(n);
    if (static_cast<int64_t>(have) > max_bytes) {
      return absl::ResourceExhaustedError(absl::StrCat(path, " has more than ", max_bytes, " bytes"));
    }
  }
  content.resize(have);
  return content;
}

namespace {

// To a pipe that nobody reads, opening would wait for ever, and no signal that has a handler would end it.
absl::StatusOr<int> OpenSpecial(const std::string& path, bool pipe) {
  for (int waited = 0;; waited += kPipeStep) {
    const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | (pipe ? O_NONBLOCK : 0));
    if (fd >= 0) {
      if (pipe) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
      return fd;
    }
    if (!pipe || errno != ENXIO) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
    if (waited >= kPipePatience) {
      return absl::DeadlineExceededError(
          absl::StrCat(path, " is a pipe that nobody has read from for ", kPipePatience / 1000, " s"));
    }
    poll(nullptr, 0, kPipeStep);
  }
}

// Follows the links at the end of a path, also where the last one's target is not there.
absl::StatusOr<std::string> BehindLinks(std::string path) {
  constexpr int kMost = 40;  // as the kernel
  for (int followed = 0; followed <= kMost; ++followed) {
    std::error_code failed;
    const std::filesystem::path target = std::filesystem::read_symlink(path, failed);
    if (failed) return path;
    path = (target.is_absolute() ? target : std::filesystem::path(path).parent_path() / target).string();
  }
  return ErrnoStatus(ELOOP, absl::StrCat("cannot follow ", path));
}

}  // namespace

absl::Status WriteFileAtomically(const std::string& asked, absl::string_view content, int mode) {
  std::string path = asked;
  struct stat there {};
  if (stat(asked.c_str(), &there) == 0) {
    if (S_ISDIR(there.st_mode)) return absl::InvalidArgumentError(absl::StrCat(asked, " is a folder, not a file"));
    if (!S_ISREG(there.st_mode)) {
      // A rename would put a file in the place of /dev/null or /dev/stdout.
      absl::StatusOr<int> opened = OpenSpecial(asked, S_ISFIFO(there.st_mode));
      if (!opened.ok()) return opened.status();
      const Fd fd(*opened);
      return WriteAll(fd.get(), content, asked);
    }
  }
  // And another in the place of a link: what it points to is meant, there or not.
  if (char* real = realpath(asked.c_str(), nullptr); real != nullptr) {
    path = real;
    free(real);
  } else if (absl::StatusOr<std::string> target = BehindLinks(asked); target.ok()) {
    path = *std::move(target);
  } else {
    return target.status();
  }
  static std::atomic<uint64_t> counter{0};
  const std::string temporary = absl::StrCat(path, ".tmp.", getpid(), ".", counter.fetch_add(1));
  absl::Status status;
  {
    Fd fd(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (fd.get() < 0) return ErrnoStatus(errno, absl::StrCat("cannot create ", temporary));
    status = WriteAll(fd.get(), content, temporary);
  }
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) {
    status = ErrnoStatus(errno, absl::StrCat("cannot rename ", temporary, " to ", path));
  }
  if (!status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  Fd folder(open(FolderOf(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0 || fsync(folder.get()) != 0) {
    return ErrnoStatus(errno, absl::StrCat("cannot fsync the folder of ", path));
  }
  return absl::OkStatus();
}

absl::Status MakeDirs(const std::string& path) {
  if (path.empty()) return absl::InvalidArgumentError("an empty folder name");
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    std::string prefix = path.substr(0, end);
    if (mkdir(prefix.c_str(), 0755) != 0 && errno != EEXIST) {
      return ErrnoStatus(errno, absl::StrCat("cannot create folder ", prefix));
    }
    if (end == std::string::npos) break;
  }
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return ErrnoStatus(errno, absl::StrCat("cannot stat ", path));
  if (!S_ISDIR(info.st_mode)) return absl::InvalidArgumentError(absl::StrCat(path, " exists and is not a folder"));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<FileLock>> FileLock::Acquire(const std::string& path) {
  int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot open lock file ", path));
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    int error = errno;
    close(fd);
    if (error == EWOULDBLOCK) {
      return absl::FailedPreconditionError(absl::StrCat(path, " is locked by another process"));
    }
    return ErrnoStatus(error, absl::StrCat("cannot lock ", path));
  }
  return std::unique_ptr<FileLock>(new FileLock(fd));
}

FileLock::~FileLock() { close(fd_); }

}  // namespace grove
