// The coordinator's end of a worker's stream, as a queue that a test reads.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>

#include "coordinator/engine/engine.h"

namespace grove::testing {

// Thread-safe.
class FakeWorkerLink : public coordinator::WorkerLink {
 public:
  void Send(v1::CoordinatorMessage message) override {
    std::lock_guard<std::mutex> lock(mu_);
    messages_.push_back(std::move(message));
    arrived_.notify_all();
  }
  void Close(absl::Status reason) override {
    std::lock_guard<std::mutex> lock(mu_);
    closed_ = std::move(reason);
    arrived_.notify_all();
  }

  std::optional<v1::CoordinatorMessage> TryNext() {
    std::lock_guard<std::mutex> lock(mu_);
    return Pop();
  }
  // Waits for a message; nullopt when the link is closed or nothing comes for a minute (the test fails then).
  std::optional<v1::CoordinatorMessage> Next() {
    std::unique_lock<std::mutex> lock(mu_);
    arrived_.wait_for(lock, std::chrono::minutes(1), [this] { return !messages_.empty() || closed_.has_value(); });
    return Pop();
  }
  std::optional<absl::Status> closed() {
    std::lock_guard<std::mutex> lock(mu_);
    return closed_;
  }

 private:
  std::optional<v1::CoordinatorMessage> Pop() {
    if (messages_.empty()) return std::nullopt;
    v1::CoordinatorMessage message = std::move(messages_.front());
    messages_.pop_front();
    return message;
  }

  std::mutex mu_;
  std::condition_variable arrived_;
  std::deque<v1::CoordinatorMessage> messages_;
  std::optional<absl::Status> closed_;
};

}  // namespace grove::testing
