// What the kernel says of a thread in /proc/.../schedstat (Documentation/scheduler/sched-stats.rst of Linux).
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <optional>

#include "common/wire/channel.h"

namespace grove::judge {

struct SchedStat {
  std::uint64_t ran = 0, waited = 0;  // nanoseconds: on a processor, and ready without one
};

// Nothing where the file is not there, or its thread has ended.
inline std::optional<SchedStat> ReadSchedStat(const wire::UniqueFd& file) {
  char text[80];
  const ssize_t length = file.valid() ? ::pread(file.get(), text, sizeof text - 1, 0) : -1;
  if (length <= 0) return std::nullopt;
  text[length] = '\0';
  unsigned long long ran = 0, waited = 0;
  if (std::sscanf(text, "%llu %llu", &ran, &waited) != 2) return std::nullopt;
  return SchedStat{ran, waited};
}

}  // namespace grove::judge
