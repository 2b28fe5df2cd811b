#include "worker/judge/candidate_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <iterator>
#include <limits>
#include <string>

namespace grove::judge {

OwnMemory::OwnMemory(std::string_view maps) {
  while (!maps.empty()) {
    const std::string line(maps.substr(0, maps.find('\n')));
    maps.remove_prefix(std::min(line.size() + 1, maps.size()));
    unsigned long long begin = 0, end = 0, inode = 0;
    char access[5] = {};
    if (std::sscanf(line.c_str(), "%llx-%llx %4s %*x %*s %llu", &begin, &end, access, &inode) != 4) continue;
    if (access[3] != 'p' || inode != 0) continue;
    if (!ranges_.empty() && ranges_.back().second == begin) {
      ranges_.back().second = end;
    } else {
      ranges_.emplace_back(begin, end);
    }
  }
}

bool OwnMemory::Has(std::uint64_t address, std::size_t bytes) const {
  const auto behind = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                                       [](std::uint64_t at, const auto& range) { return at < range.first; });
  if (behind == ranges_.begin()) return false;
  const std::uint64_t end = std::prev(behind)->second;
  return address < end && bytes <= end - address;
}

std::optional<OwnMemory> CandidateMemory::Own() const {
  constexpr std::size_t kMost = std::size_t{4} << 20;  // of text: what lies in mappings beyond counts as not its own
  std::string text;
  char part[1 << 16];
  while (text.size() < kMost) {
    const ssize_t n = ::pread(maps_.get(), part, sizeof part, static_cast<off_t>(text.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return std::nullopt;
    if (n == 0) break;
    text.append(part, static_cast<std::size_t>(n));
  }
  if (text.empty()) return std::nullopt;
  return OwnMemory(text);
}

bool CandidateMemory::Read(std::uint64_t address, char* to, std::size_t bytes) const {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());
  if (!fd_.valid() || address == 0 || address > kMost || bytes > kMost - address) return false;
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t n = ::pread(fd_.get(), to + done, bytes - done, static_cast<off_t>(address + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

bool CandidateMemory::Write(std::uint64_t address, const void* from, std::size_t bytes) const {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());
  if (!fd_.valid() || address == 0 || address > kMost || bytes > kMost - address) return false;
  return ::pwrite(fd_.get(), from, bytes, static_cast<off_t>(address)) == static_cast<ssize_t>(bytes);
}

}  // namespace grove::judge
