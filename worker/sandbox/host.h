// What this machine gives to sandboxes: bubblewrap, control groups, the system call filters.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/sandbox/cgroup.h"
#include "worker/sandbox/limits.h"

namespace grove::sandbox {

// One per process, shared by all sandboxes; thread-safe.
class SandboxHost {
 public:
  struct Options {
    std::string bwrap;  // empty = <libexec_dir>/bwrap, else PATH
    std::string libexec_dir;
    bool allow_weak = false;  // run without bubblewrap when it is missing or cannot make namespaces
  };
  // FAILED_PRECONDITION: no bubblewrap that works here, with what it said and the remedy (unless allow_weak).
  // Raises this process's own limit of descriptors to kJudgeDescriptors, as far as it may: it sends some too.
  static absl::StatusOr<std::shared_ptr<SandboxHost>> Create(const Options& options);
  ~SandboxHost();

  const std::string& bwrap() const { return bwrap_; }  // empty = weak: no namespaces
  bool user_namespace() const { return user_namespace_; }
  const std::string& namespace_evidence() const { return namespace_evidence_; }
  CgroupHost& cgroups() { return *cgroups_; }
  // Without a control group that counts processes: the kernel asks at every fork. False: they are counted now and then.
  bool asks_at_forks() const { return asks_at_forks_; }
  // RLIMIT_NOFILE of a program that is to have `wanted`: less, in proportion, where this process itself may not have
  // kJudgeDescriptors.
  int Descriptors(int wanted) const;
  // The compiled filter; each use takes its own copy.
  int seccomp_fd(bool loopback) const { return loopback ? loopback_fd_ : seccomp_fd_; }

 private:
  SandboxHost() = default;
  std::string bwrap_;
  bool user_namespace_ = false;
  std::string namespace_evidence_;
  std::unique_ptr<CgroupHost> cgroups_;
  int seccomp_fd_ = -1, loopback_fd_ = -1;
  int most_descriptors_ = kJudgeDescriptors;
  bool asks_at_forks_ = false;
};

}  // namespace grove::sandbox
