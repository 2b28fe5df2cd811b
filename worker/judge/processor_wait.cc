#include "worker/judge/processor_wait.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "worker/judge/awake.h"

namespace grove::judge {

ProcessorWait::ProcessorWait() : begin_(Read()) {}

std::map<int, std::uint64_t> ProcessorWait::Read() {
  std::map<int, std::uint64_t> waited;
  std::error_code error;
  for (std::filesystem::directory_iterator at("/proc/self/task", error), end; !error && at != end;
       at.increment(error)) {
    std::string name;
    std::getline(std::ifstream(at->path() / "comm"), name);
    if (name == kAwakeName) continue;  // those wait as long as they like
    std::ifstream file(at->path() / "schedstat");
    std::uint64_t ran = 0, wait = 0;
    if (file >> ran >> wait) waited[std::atoi(at->path().filename().c_str())] = wait;
  }
  return waited;
}

double ProcessorWait::Longest() const {
  std::uint64_t longest = 0;
  for (const auto& [thread, wait] : Read()) {
    const auto before = begin_.find(thread);
    const std::uint64_t since = before == begin_.end() ? wait : wait - std::min(before->second, wait);
    longest = std::max(longest, since);
  }
  return 1e-9 * static_cast<double>(longest);
}

}  // namespace grove::judge
