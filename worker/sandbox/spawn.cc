#include "worker/sandbox/spawn.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <future>
#include <mutex>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "worker/sandbox/fork_gate.h"

namespace grove::sandbox {
namespace {

// Everything the child needs, laid out before vfork: the child must not allocate.
struct ChildPlan {
  std::vector<char*> argv;
  std::vector<char*> env;
  std::vector<std::pair<int, int>> fds;
  std::vector<std::pair<int, rlim_t>> rlimits;
  pid_t parent = 0;
  bool new_session = true;
  std::vector<sock_filter> filter;
  int fork_gate = -1;
  sock_fprog fork_filter{};
  alignas(cmsghdr) char fork_control[CMSG_SPACE(sizeof(int))] = {};
  iovec fork_part{};
  msghdr fork_message{};
  int null_fd = -1;
  int first_free_fd = 0;  // above every target
  volatile int error = 0;
};

// Runs in the vfork child, on the parent's memory: only system calls, no errno-changing library state that matters.
[[noreturn]] void RunChild(ChildPlan& plan) {
  struct sigaction act {};
  act.sa_handler = SIG_DFL;
  for (int signal = 1; signal < 65; ++signal) syscall(SYS_rt_sigaction, signal, &act, nullptr, 8);
  uint64_t none = 0;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, nullptr, 8);
  syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (syscall(SYS_getppid) != plan.parent) syscall(SYS_exit_group, 127);  // killed before: no signal will come
  if (plan.new_session) syscall(SYS_setsid);
  syscall(SYS_umask, 022);
  if (plan.fork_gate >= 0) {
    syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    const int listener = static_cast<int>(
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &plan.fork_filter));
    if (listener >= 0) {
      memcpy(CMSG_DATA(reinterpret_cast<cmsghdr*>(plan.fork_control)), &listener, sizeof(listener));
      if (syscall(SYS_sendmsg, plan.fork_gate, &plan.fork_message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
        plan.error = errno;
        syscall(SYS_exit_group, 127);
      }
    }
  }
  // Sources go out of the way first, so that a target never overwrites a source that is still needed.
  for (auto& [ours, theirs] : plan.fds) {
    const int moved = static_cast<int>(syscall(SYS_fcntl, ours, F_DUPFD_CLOEXEC, plan.first_free_fd));
    if (moved < 0) {
      plan.error = errno;
      syscall(SYS_exit_group, 127);
    }
    ours = moved;
  }
  syscall(SYS_close_range, 3, ~0U, 4 /* CLOSE_RANGE_CLOEXEC */);
  for (auto& [ours, theirs] : plan.fds) {
    if (syscall(SYS_dup2, ours, theirs) < 0) {
      plan.error = errno;
      syscall(SYS_exit_group, 127);
    }
  }
  for (auto& [resource, value] : plan.rlimits) {
    struct rlimit64 limit {
      value, value
    };
    struct rlimit64 old {};
    syscall(SYS_prlimit64, 0, resource, nullptr, &old);
    if (limit.rlim_max > old.rlim_max) limit.rlim_cur = limit.rlim_max = old.rlim_max;
    syscall(SYS_prlimit64, 0, resource, &limit, nullptr);
  }
  if (!plan.filter.empty()) {
    sock_fprog program{static_cast<unsigned short>(plan.filter.size()), plan.filter.data()};
    syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) {
      plan.error = errno;
      syscall(SYS_exit_group, 127);
    }
  }
  syscall(SYS_execve, plan.argv[0], plan.argv.data(), plan.env.data());
  plan.error = errno;
  syscall(SYS_exit_group, 127);
  __builtin_unreachable();
}

absl::StatusOr<pid_t> SpawnHere(const SpawnRequest& request) {
  if (request.argv.empty()) return absl::InvalidArgumentError("no program to start");
  ChildPlan plan;
  for (const std::string& a : request.argv) plan.argv.push_back(const_cast<char*>(a.c_str()));
  plan.argv.push_back(nullptr);
  for (const std::string& e : request.env) plan.env.push_back(const_cast<char*>(e.c_str()));
  plan.env.push_back(nullptr);
  plan.fds = request.fds;
  plan.rlimits = request.rlimits;
  plan.new_session = request.new_session;
  plan.null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (plan.null_fd < 0) return ErrnoStatus(errno, "cannot open /dev/null");
  for (int standard = 0; standard < 3; ++standard) {
    const bool given =
        std::any_of(plan.fds.begin(), plan.fds.end(), [&](const auto& p) { return p.second == standard; });
    if (!given) plan.fds.emplace_back(plan.null_fd, standard);
  }
  plan.first_free_fd = 3;
  for (const auto& [ours, theirs] : plan.fds) plan.first_free_fd = std::max(plan.first_free_fd, theirs + 1);
  if (request.seccomp_filter_fd >= 0) {
    const off_t bytes = lseek(request.seccomp_filter_fd, 0, SEEK_END);
    if (bytes <= 0 || bytes % sizeof(sock_filter) != 0) {
      close(plan.null_fd);
      return absl::InternalError("the system call filter is malformed");
    }
    plan.filter.resize(static_cast<size_t>(bytes) / sizeof(sock_filter));
    if (pread(request.seccomp_filter_fd, plan.filter.data(), static_cast<size_t>(bytes), 0) != bytes) {
      close(plan.null_fd);
      return absl::InternalError("cannot read the system call filter");
    }
  }
  if (request.fork_gate >= 0) {
    plan.fork_gate = request.fork_gate;
    const std::vector<sock_filter>& filter = ForkGate::Filter();
    plan.fork_filter = {static_cast<unsigned short>(filter.size()), const_cast<sock_filter*>(filter.data())};
    plan.fork_part = {&plan.fork_control, 1};  // one byte, whichever
    plan.fork_message.msg_iov = &plan.fork_part;
    plan.fork_message.msg_iovlen = 1;
    plan.fork_message.msg_control = plan.fork_control;
    plan.fork_message.msg_controllen = sizeof(plan.fork_control);
    cmsghdr* header = CMSG_FIRSTHDR(&plan.fork_message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
  }
  plan.parent = getpid();
  const pid_t pid = vfork();
  if (pid == 0) RunChild(plan);
  const int fork_error = errno;
  close(plan.null_fd);
  if (pid < 0) return ErrnoStatus(fork_error, "cannot start a process");
  if (plan.error != 0) {
    // The child never became the program; reap it here.
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return ErrnoStatus(plan.error, absl::StrCat("cannot start ", request.argv[0]));
  }
  return pid;
}

// Owns the one thread from which everything is started. Never destroyed: the children's life hangs on it.
class Spawner {
 public:
  static Spawner& Get() {
    static Spawner* spawner = new Spawner;
    return *spawner;
  }

  absl::StatusOr<pid_t> Run(const SpawnRequest& request) {
    std::promise<absl::StatusOr<pid_t>> promise;
    std::future<absl::StatusOr<pid_t>> future = promise.get_future();
    {
      std::lock_guard<std::mutex> lock(mutex_);
      queue_.push_back({&request, &promise});
    }
    wake_.notify_one();
    return future.get();
  }

 private:
  struct Item {
    const SpawnRequest* request;
    std::promise<absl::StatusOr<pid_t>>* promise;
  };

  Spawner() {
    std::thread([this] { Loop(); }).detach();
  }

  void Loop() {
    // Signals belong to the main thread; a handler must never run between vfork and exec.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    for (;;) {
      Item item;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        wake_.wait(lock, [this] { return !queue_.empty(); });
        item = queue_.front();
        queue_.pop_front();
      }
      item.promise->set_value(SpawnHere(*item.request));
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Item> queue_;  // bounded by the callers, each of which waits
};

}  // namespace

absl::StatusOr<pid_t> Spawn(const SpawnRequest& request) { return Spawner::Get().Run(request); }

}  // namespace grove::sandbox
