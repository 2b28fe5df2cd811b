#include "common/daemon/lifecycle.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/files.h"
#include "common/daemon/parent.h"

namespace grove {
namespace {

std::atomic<int> g_signal_fd{-1};

void OnSignal(int) {
  const int saved = errno;
  const uint64_t one = 1;
  // A semaphore eventfd counts; a write of 1 cannot block before 2^64 signals.
  [[maybe_unused]] ssize_t written = write(g_signal_fd.load(std::memory_order_relaxed), &one, sizeof(one));
  errno = saved;
}

bool Take(int fd) {
  uint64_t value;
  return read(fd, &value, sizeof(value)) == sizeof(value);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Lifecycle>> Lifecycle::Start(Options options) {
  int parent_fd = -1;
  if (options.exit_with_parent) {
    const pid_t parent = getppid();
    // pidfd_open follows the process; PR_SET_PDEATHSIG would follow the thread that started us, which may end long
    // before.
    parent_fd = static_cast<int>(syscall(SYS_pidfd_open, parent, 0));
    if (parent_fd < 0) {
      // A kernel before 5.3, or one that hides the parent: the signal is better than nothing.
      if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0) return ErrnoStatus(errno, "cannot watch the parent process");
    }
    const char* expected = getenv(kParentPidVariable);
    int64_t pid = parent;
    if (expected != nullptr && !absl::SimpleAtoi(expected, &pid)) {
      return absl::InvalidArgumentError(absl::StrCat(kParentPidVariable, " is no process id: ", expected));
    }
    if (getppid() != parent || pid != parent) return absl::CancelledError("the parent process is gone already");
  }
  const int signal_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
  const int wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (signal_fd < 0 || wake_fd < 0) return ErrnoStatus(errno, "cannot make an eventfd");
  g_signal_fd.store(signal_fd);
  struct sigaction action {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  if (sigaction(SIGTERM, &action, nullptr) != 0) return ErrnoStatus(errno, "cannot handle SIGTERM");
  if (options.exit_with_parent) action.sa_handler = SIG_IGN;
  if (sigaction(SIGINT, &action, nullptr) != 0) return ErrnoStatus(errno, "cannot handle SIGINT");
  signal(SIGPIPE, SIG_IGN);
  return std::unique_ptr<Lifecycle>(new Lifecycle(signal_fd, wake_fd, parent_fd));
}

Lifecycle::~Lifecycle() {
  signal(SIGTERM, SIG_DFL);
  signal(SIGINT, SIG_DFL);
  g_signal_fd.store(-1);
  close(signal_fd_);
  close(wake_fd_);
  if (parent_fd_ >= 0) close(parent_fd_);
}

Lifecycle::Event Lifecycle::Wait(std::optional<absl::Duration> timeout) {
  const absl::Time deadline = timeout.has_value() ? absl::Now() + *timeout : absl::InfiniteFuture();
  for (;;) {
    if (Take(signal_fd_)) return Event::kStop;
    if (Take(wake_fd_)) return Event::kWoken;
    pollfd fds[] = {{signal_fd_, POLLIN, 0}, {wake_fd_, POLLIN, 0}, {parent_fd_, POLLIN, 0}};
    int wait_ms = -1;
    if (timeout.has_value()) {
      const int64_t left = absl::ToInt64Milliseconds(absl::Ceil(deadline - absl::Now(), absl::Milliseconds(1)));
      if (left <= 0) return Event::kTimeout;
      wait_ms = static_cast<int>(std::min<int64_t>(left, INT_MAX));
    }
    if (poll(fds, 3, wait_ms) < 0 && errno != EINTR) return Event::kStop;  // cannot happen; better to end than to spin
    if (parent_fd_ >= 0 && (fds[2].revents & POLLIN) != 0) {
      close(parent_fd_);
      parent_fd_ = -1;  // told once; poll ignores negative descriptors
      return Event::kParentGone;
    }
  }
}

void Lifecycle::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] ssize_t written = write(wake_fd_, &one, sizeof(one));
}

}  // namespace grove
