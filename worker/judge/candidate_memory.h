// The memory of a candidate's process, read while that stands still: what a script returned is taken from where it lay
// when the clock stopped, so that nothing can be computed behind the answer. The worker opens it before the candidate's
// program is there (/proc/PID/mem, which stays that of this very process, whatever its number is used for later).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "common/wire/channel.h"

namespace grove::judge {

class CandidateMemory {
 public:
  CandidateMemory() = default;  // of nobody: nothing can be read
  explicit CandidateMemory(wire::UniqueFd fd) : fd_(std::move(fd)) {}

  bool valid() const { return fd_.valid(); }
  // False where the process has no such memory, or has gone; part of it may have been read then.
  bool Read(std::uint64_t address, char* to, std::size_t bytes) const;

 private:
  wire::UniqueFd fd_;
};

}  // namespace grove::judge
