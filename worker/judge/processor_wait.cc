#include "worker/judge/processor_wait.h"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "worker/judge/awake.h"
#include "worker/judge/sched_stat.h"

namespace grove::judge {

ProcessorWait::ProcessorWait() {
  std::error_code error;
  for (std::filesystem::directory_iterator at("/proc/self/task", error), end; !error && at != end;
       at.increment(error)) {
    std::string name;
    std::ifstream comm(at->path() / "comm");
    std::getline(comm, name);
    if (name == kAwakeName) continue;  // those wait as long as they like
    wire::UniqueFd file(::open((at->path() / "schedstat").c_str(), O_RDONLY | O_CLOEXEC));
    if (file.valid()) threads_.push_back({std::move(file), 0});
  }
}

std::uint64_t ProcessorWait::Waited(const Thread& thread) {
  const std::optional<SchedStat> now = ReadSchedStat(thread.schedstat);
  return now ? now->waited : thread.begin;  // it has ended
}

void ProcessorWait::Begin() {
  for (Thread& thread : threads_) thread.begin = Waited(thread);
}

double ProcessorWait::Longest() const {
  std::uint64_t longest = 0;
  for (const Thread& thread : threads_) {
    const std::uint64_t now = Waited(thread);
    longest = std::max(longest, now - std::min(thread.begin, now));
  }
  return 1e-9 * static_cast<double>(longest);
}

}  // namespace grove::judge
