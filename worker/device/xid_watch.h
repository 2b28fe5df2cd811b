// Listens for the Xids of one GPU through NVML's events: no reading of the kernel's log, which a container has not.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace grove::device {

struct XidEvent {
  int xid = 0;
  absl::Time seen;
};

// Thread-safe. Its thread alone calls into NVML. After an error it begins to listen anew, so often as it was told;
// while NVML hangs Status says so, and listening goes on when the call returns: another thread would hang beside it.
class XidWatch {
 public:
  // Returns at once; Status says later whether there is anything to listen to.
  static std::unique_ptr<XidWatch> Start(const std::string& gpu_uuid, absl::Duration pause = absl::Minutes(1));
  ~XidWatch();  // never waits longer than a second
  XidWatch(const XidWatch&) = delete;
  XidWatch& operator=(const XidWatch&) = delete;

  // The Xids since the last call, oldest first; at most 256 are kept.
  std::vector<XidEvent> Take();
  // True when an Xid came within `timeout` that nobody has taken yet.
  bool WaitForAny(absl::Duration timeout);

  // OK while it listens. UNAVAILABLE: this GPU or driver gives no events, or the GPU is lost. DEADLINE_EXCEEDED: NVML
  // hangs. `settle`: how long to wait for the listening to begin, at most; without it this never waits.
  absl::Status Status(absl::Duration settle = absl::ZeroDuration());

  struct State;

 private:
  explicit XidWatch(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace grove::device
