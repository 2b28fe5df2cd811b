// A frozen process of a v1 control group does not die, not even of SIGKILL, before it is thawed: what a worker froze
// would outlive a worker that is killed itself. So a small program waits for the worker's end and then thaws and kills.
// (On v2 a frozen process dies at once, and dies with its worker by itself.)
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

namespace grove::sandbox {

class ThawGuard {
 public:
  // Watches over the groups `folder`/`prefix`*, which are this process's own. Null, with a line in the log, where it
  // cannot be started.
  static std::unique_ptr<ThawGuard> Start(const std::string& folder, const std::string& prefix);
  // The end of this object is not the end of the process: the guard leaves the groups alone and ends.
  ~ThawGuard();
  ThawGuard(const ThawGuard&) = delete;
  ThawGuard& operator=(const ThawGuard&) = delete;

  pid_t pid() const { return pid_; }

 private:
  ThawGuard(pid_t pid, int line) : pid_(pid), line_(line) {}
  pid_t pid_;
  int line_;  // the guard reads from it: a word says that all is well, its end that the worker is gone
};

}  // namespace grove::sandbox
