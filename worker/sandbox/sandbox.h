// Runs one untrusted program: its own namespaces by bubblewrap, a system call filter, control groups, bounded output,
// and a supervisor that knows when a limit was hit and can end everything inside at any time.
//
// Theory of operation. bubblewrap builds the namespaces and mounts, tells its child's pid (--info-fd) and waits for the
// system call filter (--seccomp), a pipe. The child, pid 1 of the sandbox, is put into its control groups before it
// gets that and is let go, so that nothing of the program ever runs outside of them; whose worker was killed before
// gets an empty filter, which the kernel refuses, and ends. (bubblewrap ties its child's life to its own only later,
// and what it would wait for otherwise, --block-fd, lets go at the end of a pipe, too. Who is killed while bubblewrap's
// two processes are finding each other leaves one of them behind, which waits and runs nothing.) From then on a
// supervisor thread per sandbox watches pipes, time and usage. Killing pid 1 of a pid namespace kills all of it; the
// control group is killed too.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "worker/sandbox/cgroup.h"
#include "worker/sandbox/fork_gate.h"
#include "worker/sandbox/host.h"
#include "worker/sandbox/limits.h"

namespace grove::sandbox {

struct Bounds {
  // Zero = no bound.
  absl::Duration wall = absl::ZeroDuration();  // from Start, or from the last SetBounds
  double cpu_seconds = 0;                      // all processes together, likewise
  int64_t memory_bytes = 0;
  int processes = 0;         // and threads
  int64_t disk_bytes = 0;    // /tmp and /dev/shm each half; fixed at Start
  int64_t output_bytes = 0;  // stdout and stderr together
  int64_t file_bytes = 0;    // largest single file; fixed at Start
};

// The names that limits go by in verdicts: the fields of v1::Limits.
struct LimitNames {
  std::string wall = "run_wall_seconds";
  std::string cpu = "run_cpu_seconds";
  std::string memory = "memory_bytes";
  std::string processes = "processes";
  std::string disk = "disk_bytes";
  std::string output = "output_bytes";
};

struct SandboxSpec {
  std::string label;                     // [a-z0-9-], for logs and group names
  std::vector<std::string> argv;         // absolute path first, as seen inside
  std::vector<std::string> env;          // nothing else is set
  std::vector<std::string> read_only;    // host paths bound at the same place; absent ones are skipped
  std::vector<std::string> devices;      // device nodes bound with access (CUDA)
  std::vector<std::pair<int, int>> fds;  // (ours, theirs): the program's descriptors beyond 0, 1, 2
  std::vector<std::pair<std::string, std::string>> files;  // (path below /tmp, content), there before it starts
  Bounds bounds;
  LimitNames names;
  int descriptors = kDescriptors;  // open at once in each process; kJudgeDescriptors for the judge
  bool identity = false;           // a synthetic /etc/passwd, which Python libraries ask for
  // Sockets of the IP families work, among the sandbox's own processes: for tools that talk to themselves that way
  // (Nsight Compute). Without bubblewrap there is no network namespace to keep them in, and Start refuses.
  bool loopback = false;
  int64_t kept_output_bytes = 64 << 10;  // of each of stdout and stderr: half from the start, half from the end
  // The supervisor's period. Wakes cost the measured program time on small machines.
  absl::Duration tick = absl::Milliseconds(50);
};

// Processes of a sandbox that did not die after SIGKILL: the kernel holds them, in a driver call that does not return
// or for a tracer that does not let go. Thread-safe.
class Leftover {
 public:
  // Takes over the descriptors (-1 = none). `child` is reaped once it is dead; -1 = not ours.
  Leftover(int monitor_pidfd, int inner_pidfd, pid_t child, pid_t inner)
      : monitor_pidfd_(monitor_pidfd), inner_pidfd_(inner_pidfd), child_(child), inner_(inner) {}
  ~Leftover();
  Leftover(const Leftover&) = delete;
  Leftover& operator=(const Leftover&) = delete;

  bool Gone();                          // by now
  pid_t pid() const { return inner_; }  // pid 1 of the sandbox, seen from here

 private:
  std::mutex mutex_;
  int monitor_pidfd_, inner_pidfd_;
  pid_t child_;
  const pid_t inner_;
};

struct Ending {
  enum class Kind {
    kExited,    // by itself, with exit_code
    kSignaled,  // by a signal that we did not send
    kKilled,    // by Kill()
    kLimit,     // a bound was hit: limit, limit_set, limit_reached
  };
  Kind kind = Kind::kExited;
  int exit_code = 0;
  int signal = 0;
  std::string limit;
  double limit_set = 0, limit_reached = 0;
  std::string out, err;  // bounded, UTF-8 as it came
  bool output_truncated = false;
  int64_t output_bytes = 0;  // all that was written
  int64_t memory_peak_bytes = -1, disk_peak_bytes = -1;
  // The most of /tmp or /dev/shm, whichever was fuller, that was in use at any look: what fills one and takes its files
  // away again is still seen, because the supervisor looks every few milliseconds while one fills.
  double disk_fullest = 0;
  double cpu_seconds = -1, wall_seconds = 0;
  int pids_peak = -1;
  bool unreaped = false;               // something inside did not die within the grace: the slot is not clean
  std::shared_ptr<Leftover> leftover;  // what that is; null otherwise
};

// SIGSEGV -> "SIGSEGV"; unknown ones by number.
std::string SignalName(int signal);

// Thread-safe.
class SandboxedProcess {
 public:
  // Returns once the program has been let go. An error means that the sandbox could not be made (never the program's
  // fault).
  static absl::StatusOr<std::unique_ptr<SandboxedProcess>> Start(std::shared_ptr<SandboxHost> host, SandboxSpec spec);
  ~SandboxedProcess();  // kills and waits
  SandboxedProcess(const SandboxedProcess&) = delete;
  SandboxedProcess& operator=(const SandboxedProcess&) = delete;

  void Kill();                           // asks for the end; returns at once
  bool WaitFor(absl::Duration timeout);  // true when it has ended and all of it is gone
  const Ending& Wait();                  // blocks until then
  bool Ended() { return WaitFor(absl::ZeroDuration()); }

  // Stops all that runs inside, to the last thread, and lets it go on: see Cgroup::Freeze. Killing works in both
  // states.
  absl::Status Hold(bool held) { return cgroup_->Freeze(held); }
  bool CanHold() const;
  // The first thread of each process inside runs on this processor of the host alone, or, where it is negative, on any
  // that the calling thread may use; then their other threads do, too, which may be children of a bound one. Whether
  // the kernel did so. It is for measuring, and binds nobody who moves away.
  bool StandOn(int processor) const;
  // Processor time of all inside so far; negative where there is no control group that counts it.
  double CpuSeconds() const { return cgroup_->Usage().cpu_seconds; }
  // Memory that all inside hold now, by their control group; where none counts it, what is theirs alone by /proc.
  int64_t MemoryBytes() const;

  // New bounds for a program that was started ahead of its work; times count from now.
  void SetBounds(const Bounds& bounds);

  // A regular file below the sandbox's /tmp, also after the end. Never follows a link. NOT_FOUND, RESOURCE_EXHAUSTED.
  absl::StatusOr<std::string> ReadTmpFile(const std::string& path, int64_t max_bytes);

  pid_t pid() const { return inner_pid_; }  // pid 1 of the sandbox, seen from here
  // The memory of the program's first process, as it is at any time: /proc/PID/mem, and /proc/PID/maps. Before the
  // program has others. The caller closes both. UNAVAILABLE where the kernel does not let us.
  absl::StatusOr<std::pair<int, int>> OpenMemory() const;
  // All processes inside, seen from here. Without a control group a walk of /proc.
  std::vector<pid_t> Pids() const;

 private:
  SandboxedProcess() = default;
  void Supervise();
  void HardKill();
  void Wake();  // the supervisor

  std::shared_ptr<SandboxHost> host_;
  SandboxSpec spec_;
  std::unique_ptr<Cgroup> cgroup_;
  std::unique_ptr<ForkGate> fork_gate_;  // null unless host_->asks_at_forks()
  pid_t monitor_pid_ = -1;               // our child: bubblewrap, or the program itself without it
  pid_t inner_pid_ = -1;
  int monitor_pidfd_ = -1, inner_pidfd_ = -1;
  int out_fd_ = -1, err_fd_ = -1, wake_fd_ = -1;
  int tmp_fd_ = -1, shm_fd_ = -1;  // O_PATH: keep the sandbox's tmpfs alive until we have read from it
  std::string weak_tmp_;           // without bubblewrap: a folder of our own, removed at the end
  absl::Time started_;

  std::mutex mutex_;
  std::condition_variable ended_cv_;
  bool kill_requested_ = false;
  bool ended_ = false;
  Bounds bounds_;
  absl::Time bounds_from_;
  double cpu_from_ = 0;
  bool over_memory_ = false;  // more was in use than the bound that was set last
  Ending ending_;
  std::thread supervisor_;
};

}  // namespace grove::sandbox
