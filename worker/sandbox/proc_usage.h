// What a sandbox's processes use, by /proc: where there are no control groups that count it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace grove::sandbox {

struct ProcUsage {
  int64_t memory_bytes = 0;
  int pids = 0;
  double cpu_seconds = 0;
};

// Sums over the processes of a pid namespace (or of a session, without namespaces). Costs a walk of /proc, so only used
// where no control group can be written.
ProcUsage SumProcesses(pid_t inner_pid, bool by_namespace, std::vector<pid_t>* members = nullptr);

}  // namespace grove::sandbox
