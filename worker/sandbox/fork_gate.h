// The limit of processes where no control group keeps it: the kernel asks before every process and thread that is made.
//
// A system call filter in the sandbox hands clone, fork and vfork to us (SECCOMP_RET_USER_NOTIF, seccomp_unotify(2)).
// Most are let go on at once: how many can be alive at most is known without looking. Only where that could pass the
// limit are the living counted, so that a burst that is over before the supervisor's next look is refused as well.
// A fork costs a round trip to this thread, less than its own noise on a busy machine (200 us, threads). Forks at the
// very same moment may pass the limit by as many as are being made at once, and the next one is refused. RLIMIT_NPROC
// would do the same for nothing, but not for root.
#pragma once

#include <linux/filter.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"

namespace grove::sandbox {

class ForkGate {
 public:
  // The filter's program, for SpawnRequest::fork_gate. Empty where this kernel has no such thing.
  static const std::vector<sock_filter>& Filter();
  // True when a child of this process can be given the filter. It cannot when a seccomp listener above us has taken the
  // only place (some container runtimes), or when the kernel is older than 5.5. Tried once.
  static bool Works();

  // Takes what the child sent over `socket` (not owned). Null when it sent nothing: then forks go on unasked.
  // `refused` is called, from the gate's thread, once a fork has been refused.
  static std::unique_ptr<ForkGate> FromChild(int socket, std::function<void()> refused);
  ~ForkGate();  // forks that still ask are answered ENOSYS by the kernel
  ForkGate(const ForkGate&) = delete;
  ForkGate& operator=(const ForkGate&) = delete;

  // From now on at most `limit` (0 = no limit) as told by `count`, which is called from the gate's thread. Once.
  void Begin(int limit, std::function<int()> count);
  void SetLimit(int limit) { limit_ = limit; }
  bool refused() const { return was_refused_; }

 private:
  ForkGate(int listener, int stop, std::function<void()> refused);
  void Run();
  bool Allow();

  const int listener_, stop_;
  const std::function<void()> on_refusal_;
  std::function<int()> count_;  // set before begun_
  std::atomic<bool> begun_{false}, was_refused_{false};
  std::atomic<int> limit_{0};
  int at_most_ = -1;  // alive: the last count and all that were let go since; -1 = never counted
  std::thread thread_;
};

}  // namespace grove::sandbox
