// A request to stop, from any thread, to whatever is waiting.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace grove::client {

// Thread-safe. Sticky: once cancelled it stays so. Not to be called from a signal handler: have a thread take the
// signal.
class Cancellation {
 public:
  Cancellation() = default;
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;

  void Cancel();
  bool cancelled() const;

  // Waits; true when it ended because of Cancel.
  bool WaitFor(absl::Duration duration) const;

  // Calls `callback` once, from the thread that cancels, or at once when that has happened already. It must not block
  // and must not touch this object. Returns a ticket for Unregister, after which the callback is not running and never
  // will.
  uint64_t Register(std::function<void()> callback);
  void Unregister(uint64_t ticket);

 private:
  mutable absl::Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t next_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<uint64_t, std::function<void()>> callbacks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace grove::client
