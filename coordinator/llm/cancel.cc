#include "coordinator/llm/cancel.h"

namespace grove::llm {

void CancelToken::Cancel() {
  {
    std::lock_guard<std::mutex> lock(mu_);
    cancelled_.store(true, std::memory_order_release);
  }
  changed_.notify_all();
}

bool CancelToken::WaitFor(absl::Duration duration) {
  std::unique_lock<std::mutex> lock(mu_);
  return !changed_.wait_for(lock, absl::ToChronoNanoseconds(duration), [this] { return cancelled(); });
}

}  // namespace grove::llm
