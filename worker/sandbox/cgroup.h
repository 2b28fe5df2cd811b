// Control groups around one sandbox: memory, process count, CPU time and freezing, by cgroup v2 or v1, whichever can be
// written.
#pragma once

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/sandbox/thaw_guard.h"

namespace grove::sandbox {

// What a group has used and whether a limit was hit. Negative = not known.
struct CgroupUsage {
  int64_t memory_bytes = -1;
  int64_t memory_peak_bytes = -1;
  int64_t oom_kills = -1;  // processes the kernel killed for memory
  int64_t pids = -1;
  int64_t pids_refused = -1;  // forks refused by pids.max
  double cpu_seconds = -1;
};

// One group, or one per v1 hierarchy, for one sandbox. Thread-compatible, but KillAll and Freeze may be called by two
// threads at once. The destructor kills what is left inside and removes the folders.
class Cgroup {
 public:
  ~Cgroup();
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;

  absl::Status Add(pid_t pid);  // with all its threads; children follow by themselves
  // 0 = leave. Fails only where the controller is there and refuses.
  absl::Status SetLimits(int64_t memory_bytes, int processes);
  CgroupUsage Usage() const;
  void KillAll();  // thaws, sends SIGKILL to all inside; does not wait
  // Freezing returns once nothing inside runs any more (within a second, else DEADLINE_EXCEEDED and all goes on);
  // thawing returns at once. After KillAll nothing is frozen again. FAILED_PRECONDITION where there is no freezer.
  absl::Status Freeze(bool frozen);
  std::vector<pid_t> Pids() const;

 private:
  friend class CgroupHost;
  Cgroup() = default;
  std::vector<std::string> Folders() const;                    // each once
  std::string memory_dir_, pids_dir_, cpu_dir_, freezer_dir_;  // the same folder on v2; empty = not available
  std::mutex freeze_mutex_;
  bool killed_ = false;
  bool v2_ = false;
};

// What this process may do with cgroups. Thread-safe after Detect.
class CgroupHost {
 public:
  // Looks for a place where groups can be made: the group in which this process runs (it moves to a leaf when v2's rule
  // of no inner processes asks for it and it is alone there), the root of the v2 hierarchy, then v1's hierarchies.
  // Never fails: what is not available is said by the members. Removes groups that dead processes of ours left behind.
  // $GROVE_CGROUPS=off: as on a machine where none can be written, to try what takes their place.
  static std::unique_ptr<CgroupHost> Detect();

  bool memory() const { return !memory_base_.empty(); }
  bool pids() const { return !pids_base_.empty(); }
  bool cpu() const { return !cpu_base_.empty(); }
  bool freezer() const { return !freezer_base_.empty(); }
  const std::string& evidence() const { return evidence_; }  // "v2 at /sys/fs/cgroup/x", "v1 memory at ...", or why not

  // A fresh group with the parts that are available; an empty one where none is.
  absl::StatusOr<std::unique_ptr<Cgroup>> Create(const std::string& label);

 private:
  bool v2_ = false;
  std::string memory_base_, pids_base_, cpu_base_, freezer_base_;
  std::string evidence_;
  std::unique_ptr<ThawGuard> guard_;  // of what v1's freezer froze
};

}  // namespace grove::sandbox
