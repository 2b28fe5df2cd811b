#include "worker/judge/candidate_memory.h"

#include <unistd.h>

#include <cerrno>
#include <limits>

namespace grove::judge {

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

}  // namespace grove::judge
