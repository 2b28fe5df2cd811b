// What ends the watching of a job early: the user, or a farm of our own that cannot go on.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "clients/cli/interrupts.h"
#include "clients/cli/session.h"
#include "clients/cpp/cancellation.h"

namespace grove::cli {

class WatchStop {
 public:
  // Both outlive this.
  WatchStop(Session* session, Interrupts* interrupts);
  ~WatchStop();
  WatchStop(const WatchStop&) = delete;
  WatchStop& operator=(const WatchStop&) = delete;

  client::Cancellation& cancellation() { return stop_; }
  // What a watch under this cancellation came to: why the farm cannot go on, where that ended it.
  absl::Status Outcome(const absl::Status& watched) const;

 private:
  Session* const session_;
  Interrupts* const interrupts_;
  client::Cancellation stop_;
  uint64_t ticket_ = 0;
};

}  // namespace grove::cli
