// Where the time of the device slot goes: what it does, and what it waits for when it does nothing.
#pragma once

#include <map>
#include <string>

#include "absl/time/time.h"

namespace grove::worker {

// The slot is in exactly one state at a time. "checking" and "timing" are the device's own work; all else is why it did
// nothing of it:
//   no_work         no lease
//   awaiting_build  leases, all of them still in their builds
//   loading         the judge of a problem starts and reads it
//   profiling       a correct candidate runs once more under Nsight Compute, where the job asks for it
//   starting        a candidate's process was not ready ahead
//   ending          the candidate is killed and reaped, the device tried after a fault
//   quarantined
// Pure: time comes as an argument and never runs backwards. Not thread-safe.
class SlotClock {
 public:
  explicit SlotClock(absl::Time now) : since_(now) {}

  void Enter(const std::string& state, absl::Time now);
  const std::string& state() const { return state_; }
  // Seconds by state since the start, the present one included.
  std::map<std::string, double> Seconds(absl::Time now) const;

 private:
  std::string state_ = "no_work";
  absl::Time since_;
  std::map<std::string, double> seconds_;
};

}  // namespace grove::worker
