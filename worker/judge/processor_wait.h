// How long this process's threads were ready to run and had no processor: what other programs on the machine take from
// a timed run on a CPU. From /proc/self/task/*/schedstat, whose second figure is that time in nanoseconds
// (Documentation/scheduler/sched-stats.rst of Linux); none of it is known where the kernel keeps no such statistics.
#pragma once

#include <cstdint>
#include <map>

namespace grove::judge {

class ProcessorWait {
 public:
  ProcessorWait();  // begins now
  // Seconds that the thread which waited longest has waited since the beginning.
  double Longest() const;

 private:
  static std::map<int, std::uint64_t> Read();  // nanoseconds by thread
  std::map<int, std::uint64_t> begin_;
};

}  // namespace grove::judge
