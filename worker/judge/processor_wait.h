// How long this process's threads were ready to run and had no processor: what other programs on the machine take from
// a timed run on a CPU. From /proc/self/task/*/schedstat, whose second figure is that time in nanoseconds
// (Documentation/scheduler/sched-stats.rst of Linux); none of it is known where the kernel keeps no such statistics.
#pragma once

#include <cstdint>
#include <vector>

#include "common/wire/channel.h"

namespace grove::judge {

class ProcessorWait {
 public:
  // Finds the threads there are, but for those of Awake. Before the rest that a timed run follows: it takes a while.
  ProcessorWait();
  // The figures as they are now; a read for each thread. At once before and at once after the run.
  void Begin();
  // Seconds that the thread which waited longest has waited since Begin.
  double Longest() const;

 private:
  struct Thread {
    wire::UniqueFd schedstat;
    std::uint64_t begin = 0;  // nanoseconds
  };
  static std::uint64_t Waited(const Thread& thread);
  std::vector<Thread> threads_;
};

}  // namespace grove::judge
