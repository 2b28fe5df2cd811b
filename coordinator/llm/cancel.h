// A request to stop, seen by whoever waits.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "absl/time/time.h"

namespace grove::llm {

// Thread-safe. Once cancelled, for ever.
class CancelToken {
 public:
  void Cancel();
  bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }
  // Waits so long or until cancelled. False = cancelled.
  bool WaitFor(absl::Duration duration);

 private:
  std::atomic<bool> cancelled_{false};
  std::mutex mu_;
  std::condition_variable changed_;
};

// Waiting as an argument, so that back-off is tested without sleeping.
class Sleeper {
 public:
  virtual ~Sleeper() = default;
  // Waits so long or until cancelled. False = cancelled. Thread-safe.
  virtual bool Sleep(absl::Duration duration, CancelToken& cancel) = 0;
};

class SystemSleeper : public Sleeper {
 public:
  bool Sleep(absl::Duration duration, CancelToken& cancel) override { return cancel.WaitFor(duration); }
};

}  // namespace grove::llm
