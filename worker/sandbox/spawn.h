// Starting a program from a process with many threads. fork() would run other libraries' fork handlers and copy page
// tables; vfork() does neither, and its child here makes system calls only.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace grove::sandbox {

struct SpawnRequest {
  std::vector<std::string> argv;                // argv[0] is the path; PATH is not searched
  std::vector<std::string> env;                 // "NAME=value"; nothing is inherited
  std::vector<std::pair<int, int>> fds;         // (ours, theirs); 0, 1 and 2 default to /dev/null
  std::vector<std::pair<int, rlim_t>> rlimits;  // (RLIMIT_x, soft and hard)
  bool new_session = true;
  int seccomp_filter_fd = -1;  // a BPF program to install in the child itself; only for sandboxes without bubblewrap
  // A socket over which the child sends the listener of ForkGate::Filter, which it installs before it becomes the
  // program (with no_new_privs, so not for a program that lives by its set-user-id bit). Where that is not possible it
  // sends nothing and goes on. Whoever sets it must answer: the program's first fork waits.
  int fork_gate = -1;
};

// Starts it with every signal at its default and unblocked, and every other descriptor closed. The child dies with this
// process: it is started from one thread that lives as long as the process, because the kernel ties PR_SET_PDEATHSIG
// to the thread and not to the process. Thread-safe. The caller reaps the child.
// INTERNAL or the errno's code when it could not be started.
absl::StatusOr<pid_t> Spawn(const SpawnRequest& request);

}  // namespace grove::sandbox
