#include "clients/cli/watch_stop.h"

namespace grove::cli {

WatchStop::WatchStop(Session* session, Interrupts* interrupts) : session_(session), interrupts_(interrupts) {
  ticket_ = interrupts_->cancellation().Register([this] { stop_.Cancel(); });
  if (session_->farm() != nullptr) session_->farm()->OnGivenUp([this] { stop_.Cancel(); });
}

WatchStop::~WatchStop() {
  if (session_->farm() != nullptr) session_->farm()->OnGivenUp(nullptr);
  interrupts_->cancellation().Unregister(ticket_);
}

absl::Status WatchStop::Outcome(const absl::Status& watched) const {
  if (watched.ok() || interrupts_->interrupted() || session_->farm() == nullptr) return watched;
  const absl::Status health = session_->farm()->Health();
  return health.ok() ? watched : health;
}

}  // namespace grove::cli
