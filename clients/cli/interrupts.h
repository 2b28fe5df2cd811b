// Ctrl-C and its relatives, taken by a thread instead of a handler.
#pragma once

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "clients/cpp/cancellation.h"

namespace grove::cli {

// The first SIGINT, SIGTERM or SIGHUP cancels; the second runs the force callback and ends the process with 130.
// To be made in main before any other thread, so that all of them inherit the blocked signals.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  client::Cancellation& cancellation() { return cancellation_; }
  bool interrupted() const { return cancellation_.cancelled(); }

  // Said at once at the first signal, from the taking thread. Replaces what was set before.
  void OnFirst(std::function<void()> callback);
  // Run at the second one, just before the process ends: kills what must not outlive it.
  void OnForce(std::function<void()> callback);

 private:
  void Take();

  client::Cancellation cancellation_;
  absl::Mutex mutex_;
  std::function<void()> on_first_ ABSL_GUARDED_BY(mutex_);
  std::function<void()> on_force_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace grove::cli
