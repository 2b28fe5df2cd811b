#include "clients/cpp/cancellation.h"

#include <utility>

namespace grove::client {

void Cancellation::Cancel() {
  absl::MutexLock lock(&mutex_);
  if (cancelled_) return;
  cancelled_ = true;
  // Under the lock, so that Unregister means "not running": the callbacks only flip a call's state.
  for (auto& [ticket, callback] : callbacks_) callback();
  callbacks_.clear();
}

bool Cancellation::cancelled() const {
  absl::MutexLock lock(&mutex_);
  return cancelled_;
}

bool Cancellation::WaitFor(absl::Duration duration) const {
  absl::MutexLock lock(&mutex_);
  return mutex_.AwaitWithTimeout(absl::Condition(&cancelled_), duration);
}

uint64_t Cancellation::Register(std::function<void()> callback) {
  absl::MutexLock lock(&mutex_);
  if (cancelled_) {
    callback();
    return 0;
  }
  const uint64_t ticket = next_++;
  callbacks_.emplace(ticket, std::move(callback));
  return ticket;
}

void Cancellation::Unregister(uint64_t ticket) {
  absl::MutexLock lock(&mutex_);
  callbacks_.erase(ticket);
}

}  // namespace grove::client
