#include "worker/device/foreign.h"

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "worker/device/nvml.h"

namespace grove::device {

int ParentOf(int pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  // "PID (name) state parent ...": a name may hold anything.
  const size_t name_end = text.rfind(") ");
  if (name_end == std::string::npos) return -1;
  const std::vector<std::string> fields = absl::StrSplit(text.substr(name_end + 2), absl::MaxSplits(' ', 2));
  int parent = -1;
  return fields.size() == 3 && absl::SimpleAtoi(fields[1], &parent) ? parent : -1;
}

std::optional<int> ForeignAmong(const std::vector<int>& pids, int self, const std::function<int(int)>& parent_of) {
  int own = 0, foreign = 0;
  for (int pid : std::set<int>(pids.begin(), pids.end())) {
    while (pid > 0 && pid != self) pid = parent_of(pid);
    if (pid == self) ++own;
    if (pid == 0) ++foreign;
  }
  return own > 0 ? std::optional(foreign) : std::nullopt;
}

std::optional<int> ForeignProcesses(const std::string& gpu_uuid) {
  const auto pids = QueryProcesses(gpu_uuid);
  return pids.ok() ? ForeignAmong(*pids, getpid(), ParentOf) : std::nullopt;
}

}  // namespace grove::device
