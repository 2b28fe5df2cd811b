// A descriptor with an owner.
#pragma once

#include <unistd.h>

#include <utility>

namespace grove {

// Closes what it holds. (common/wire has one of its own: nothing of this folder is there where judge and candidate are
// built.)
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { Close(); }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  void Set(int fd) {
    Close();
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

}  // namespace grove
