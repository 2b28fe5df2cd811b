// The memory of a candidate's process, while that stands still: what a script returned is taken from where it lay
// when the clock stopped, so that nothing can be computed behind the answer. The worker opens it before the candidate's
// program is there (/proc/PID/mem and maps, which stay those of this very process, whatever its number is used for
// later).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "common/wire/channel.h"

namespace grove::judge {

// Memory that is a process's alone and no file's: each page is there once.
class OwnMemory {
 public:
  // The text of /proc/PID/maps (proc_pid_maps(5)).
  explicit OwnMemory(std::string_view maps);
  bool Has(std::uint64_t address, std::size_t bytes) const;

 private:
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges_;  // [begin, end), in order, neighbours joined
};

class CandidateMemory {
 public:
  CandidateMemory(wire::UniqueFd memory, wire::UniqueFd maps) : fd_(std::move(memory)), maps_(std::move(maps)) {}

  // As it is now; nothing where the process has gone.
  std::optional<OwnMemory> Own() const;
  // False where the process has no such memory, or has gone; part of it may have been read then.
  bool Read(std::uint64_t address, char* to, std::size_t bytes) const;
  bool Write(std::uint64_t address, const void* from, std::size_t bytes) const;

 private:
  wire::UniqueFd fd_, maps_;
};

}  // namespace grove::judge
