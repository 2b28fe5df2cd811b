#include "worker/sandbox/fork_gate.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "worker/sandbox/spawn.h"

namespace grove::sandbox {

const std::vector<sock_filter>& ForkGate::Filter() {
  static const std::vector<sock_filter>* const filter = [] {
    // Other architectures' numbers need no thought: the sandbox's own filter ends whoever uses them.
    const std::vector<uint32_t> calls = {
        SYS_clone,
        SYS_clone3,
#ifdef SYS_fork
        SYS_fork,
        SYS_vfork,
#endif
    };
    auto* program = new std::vector<sock_filter>;
    program->push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
    for (size_t i = 0; i < calls.size(); ++i) {
      const auto to_ask = static_cast<uint8_t>(calls.size() - i);  // over the remaining comparisons and the ALLOW
      program->push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], to_ask, 0));
    }
    program->push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    program->push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF));
    return program;
  }();
  return *filter;
}

bool ForkGate::Works() {
  static const bool works = [] {
    // 5.5 brought the flag that lets a call go on; without it every fork would have to be refused.
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) return false;
    SpawnRequest request;
    // It forks, so a kernel that cannot let a fork go on shows itself.
    request.argv = {"/bin/sh", "-c", "(exit 7); exit $?"};
    request.fork_gate = sockets[1];
    absl::StatusOr<pid_t> pid = Spawn(request);
    close(sockets[1]);
    bool forked = false;
    if (pid.ok()) {
      const std::unique_ptr<ForkGate> gate = FromChild(sockets[0], [] {});
      int status = 0;
      while (waitpid(*pid, &status, 0) < 0 && errno == EINTR) {
      }
      forked = gate != nullptr && WIFEXITED(status) && WEXITSTATUS(status) == 7;
    }
    close(sockets[0]);
    return forked;
  }();
  return works;
}

std::unique_ptr<ForkGate> ForkGate::FromChild(int socket, std::function<void()> refused) {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  // The child has sent before it became a program, so what is not there now will never be.
  if (recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != 1) return nullptr;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return nullptr;
  int listener = -1;
  memcpy(&listener, CMSG_DATA(header), sizeof(listener));
  const int stop = eventfd(0, EFD_CLOEXEC);
  if (stop < 0) {
    close(listener);
    return nullptr;
  }
  return std::unique_ptr<ForkGate>(new ForkGate(listener, stop, std::move(refused)));
}

ForkGate::ForkGate(int listener, int stop, std::function<void()> refused)
    : listener_(listener), stop_(stop), on_refusal_(std::move(refused)), thread_([this] { Run(); }) {}

ForkGate::~ForkGate() {
  const uint64_t one = 1;
  (void)!write(stop_, &one, sizeof(one));
  thread_.join();
  close(stop_);
}

void ForkGate::Begin(int limit, std::function<int()> count) {
  count_ = std::move(count);
  limit_ = limit;
  begun_ = true;
}

bool ForkGate::Allow() {
  const int limit = limit_;
  if (!begun_ || limit <= 0) return true;
  if (at_most_ < 0 || at_most_ >= limit) at_most_ = count_();
  if (at_most_ >= limit) return false;
  ++at_most_;
  return true;
}

void ForkGate::Run() {
  seccomp_notif_sizes sizes = {};
  (void)syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes);
  // Both grow with the kernel; max_align_t because operator new of char does not promise more than it needs.
  const auto units = [](size_t bytes) { return bytes / sizeof(std::max_align_t) + 1; };
  std::vector<std::max_align_t> question(units(std::max<size_t>(sizes.seccomp_notif, sizeof(seccomp_notif))));
  std::vector<std::max_align_t> answer(units(std::max<size_t>(sizes.seccomp_notif_resp, sizeof(seccomp_notif_resp))));
  auto* asked = reinterpret_cast<seccomp_notif*>(question.data());
  auto* told = reinterpret_cast<seccomp_notif_resp*>(answer.data());
  for (;;) {
    pollfd fds[2] = {{listener_, POLLIN, 0}, {stop_, POLLIN, 0}};
    if (poll(fds, 2, -1) < 0 && errno != EINTR) break;
    if (fds[1].revents != 0) break;
    if (fds[0].revents == 0) continue;
    if ((fds[0].revents & POLLIN) == 0) break;  // nobody is left who could ask
    memset(question.data(), 0, question.size() * sizeof(std::max_align_t));
    if (ioctl(listener_, SECCOMP_IOCTL_NOTIF_RECV, asked) != 0) {
      if (errno == EINTR || errno == ENOENT) continue;  // who asked was ended or interrupted meanwhile
      break;
    }
    memset(answer.data(), 0, answer.size() * sizeof(std::max_align_t));
    told->id = asked->id;
    const bool allowed = Allow();
    if (allowed) {
      told->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    } else {
      told->error = -EAGAIN;  // what a control group's limit and RLIMIT_NPROC answer
      was_refused_ = true;
    }
    // An error is ENOENT, as above; or EINVAL from a kernel without the flag, whose fork must not wait for ever.
    if (ioctl(listener_, SECCOMP_IOCTL_NOTIF_SEND, told) != 0 && errno == EINVAL) break;
    if (!allowed) on_refusal_();
  }
  close(listener_);  // whoever still asks gets ENOSYS
}

}  // namespace grove::sandbox
