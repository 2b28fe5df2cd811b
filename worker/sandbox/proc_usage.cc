#include "worker/sandbox/proc_usage.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace grove::sandbox {

ProcUsage SumProcesses(pid_t inner_pid, bool by_namespace, std::vector<pid_t>* members) {
  ProcUsage usage;
  struct stat wanted {};
  if (by_namespace && stat(absl::StrCat("/proc/", inner_pid, "/ns/pid").c_str(), &wanted) != 0) return usage;
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return usage;
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  while (dirent* entry = readdir(proc)) {
    int pid = 0;
    if (!absl::SimpleAtoi(entry->d_name, &pid)) continue;
    const std::string base = absl::StrCat("/proc/", pid);
    if (by_namespace) {
      struct stat ns {};
      if (stat(absl::StrCat(base, "/ns/pid").c_str(), &ns) != 0 || ns.st_ino != wanted.st_ino) continue;
    }
    std::ifstream stat_file(absl::StrCat(base, "/stat"));
    std::string line;
    if (!std::getline(stat_file, line)) continue;
    const size_t name_end = line.rfind(')');
    if (name_end == std::string::npos) continue;
    std::vector<std::string> f = absl::StrSplit(line.substr(name_end + 2), ' ');
    // Fields from the third on (proc(5)): 3 session at [3], utime [11], stime [12], cutime [13], cstime [14], threads
    // [17].
    if (f.size() < 18) continue;
    int session = 0, threads = 0;
    int64_t utime = 0, stime = 0;
    (void)absl::SimpleAtoi(f[3], &session);
    (void)absl::SimpleAtoi(f[17], &threads);
    (void)absl::SimpleAtoi(f[11], &utime);
    (void)absl::SimpleAtoi(f[12], &stime);
    if (!by_namespace && session != inner_pid) continue;
    usage.pids += std::max(1, threads);
    usage.cpu_seconds += static_cast<double>(utime + stime) / ticks;
    if (members != nullptr) members->push_back(pid);
    std::ifstream status(absl::StrCat(base, "/status"));
    while (std::getline(status, line)) {
      if (!absl::StartsWith(line, "RssAnon:")) continue;
      int64_t kib = 0;
      std::vector<std::string> parts = absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
      if (parts.size() >= 2 && absl::SimpleAtoi(parts[1], &kib)) usage.memory_bytes += kib << 10;
      break;
    }
  }
  closedir(proc);
  return usage;
}

}  // namespace grove::sandbox
