// Where a sandbox's processes spend their CPU time, seen from outside: all of them are stopped now and then, and the
// kernel says at which instruction each thread stands and how long it has run. Nothing inside can forge that; a
// profiler in their own process could be blinded, and sees only the threads that it was told of.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "worker/sandbox/mappings.h"

namespace grove::worker {

// A thread that had run since the last look, for how long, and the code in which it stood.
struct Standing {
  pid_t thread = 0;
  sandbox::MappedCode code;
  double ran = 0;  // seconds
};

struct WatchedWork {
  std::vector<std::vector<Standing>> looks;  // all threads at one moment, but for those in system calls
  double system_seconds = 0;                 // CPU time of threads which stood in a system call
  double ended_seconds = 0;           // of threads and processes that were not there any more when they were looked for
  double passed_seconds = 0;          // of each look, what that thread had run which had run for longest
  int seen = 0;                       // threads found with CPU time since they were last looked at
  double squares = 0;                 // of those times: (sum)^2 / squares says how many they are worth
  std::string problem;                // why nothing could be read; empty when something was
  void Add(const WatchedWork& more);  // of the same processes, later
};

// Theory of operation. A thread of its own stops every process (SIGSTOP, which nothing can catch), waits until the
// kernel says that its threads stand, reads /proc/PID/maps and of each thread `syscall` (instruction pointer, or the
// system call) and `schedstat` (CPU time), and what all took together with those that have ended, and lets all go on;
// then it waits for a random time around two milliseconds. What a thread ran since the last stop is ascribed to where
// it stands. Costs what is watched a good part of its time, so nothing is timed meanwhile. What ran for long since the
// last stop (on a busy machine, where the watcher itself had to wait) stands for many places and is left out.
class WorkWatch {
 public:
  // `pids`: the processes as they are now. `held`: whether they are kept from running, when there is nothing to see and
  // nothing could be stopped; empty = never. Both are called from the watching thread. `changes`: MappedCode::changed
  // is known of what is seen (30 ms a look for a process with torch). `together`: CPU seconds of all processes that
  // there are and have been; empty, or below zero = not known, and then those of the processes that are there, with
  // their threads that have ended.
  explicit WorkWatch(std::function<std::vector<pid_t>()> pids, std::function<bool()> held = nullptr,
                     bool changes = false, std::function<double()> together = nullptr);
  ~WorkWatch();  // as Finish
  WorkWatch(const WorkWatch&) = delete;
  WorkWatch& operator=(const WorkWatch&) = delete;

  // Ends it. All processes go on.
  WatchedWork Finish();

 private:
  void Watch();
  void Look(bool first);
  double Together(const std::vector<pid_t>& pids);  // CPU seconds since the last look

  const std::function<std::vector<pid_t>()> pids_;
  const std::function<bool()> held_;
  const bool changes_;
  const std::function<double()> together_;
  std::atomic<bool> stopping_{false};
  std::map<pid_t, double> ran_;  // by thread: CPU seconds when it was last looked at
  std::map<pid_t, double> all_;  // by process: of all its threads, with those that have ended
  double had_ = 0;               // what together_ said then
  WatchedWork work_;
  std::thread thread_;
};

}  // namespace grove::worker
