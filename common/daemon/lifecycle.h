// How a daemon is asked to end: signals, the end of its parent, and its own parts.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace grove {

// Installs handlers for SIGTERM and SIGINT and ignores SIGPIPE, once per process, before other threads start. Handlers,
// not a blocked mask: a mask would be inherited by every program that the daemon starts. Wait is for one thread; Wake
// may come from any.
class Lifecycle {
 public:
  enum class Event {
    kStop,        // SIGTERM or SIGINT
    kParentGone,  // with exit_with_parent: whoever started this daemon is gone
    kWoken,       // Wake
    kTimeout,
  };
  struct Options {
    // End when the parent does, even by SIGKILL. Then SIGINT is ignored: a terminal sends Ctrl-C to the whole process
    // group, and a parent that stops its daemons in order says so by SIGTERM. CANCELLED from Start: the parent is gone
    // already (parent.h).
    bool exit_with_parent = false;
  };

  static absl::StatusOr<std::unique_ptr<Lifecycle>> Start(Options options);
  ~Lifecycle();
  Lifecycle(const Lifecycle&) = delete;
  Lifecycle& operator=(const Lifecycle&) = delete;

  // The next event. Each signal is one kStop, so that a second one can force.
  Event Wait(std::optional<absl::Duration> timeout = std::nullopt);
  void Wake();

 private:
  Lifecycle(int signal_fd, int wake_fd, int parent_fd)
      : signal_fd_(signal_fd), wake_fd_(wake_fd), parent_fd_(parent_fd) {}
  const int signal_fd_;
  const int wake_fd_;
  int parent_fd_;
};

}  // namespace grove
