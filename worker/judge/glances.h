// Glances at what a candidate has returned, between the moment at which the clock stops and the one at which all is
// copied: copying large outputs takes as long as making them, and a kernel that is at work on the device is not
// interrupted for it. The places are secret, and drawn before the run. docs/timing.md: "The inputs are spoiled at the
// answer".
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "worker/judge/device_ops.h"
#include "worker/judge/random.h"
#include "worker/judge/slots.h"

namespace grove::judge {

class Glances {
 public:
  // References outlive it.
  Glances(Arena& arena, DeviceOps& ops, Random& random) : arena_(arena), ops_(ops), random_(random) {}

  struct Output {
    std::size_t set, index;  // of a slot, and in it
  };

  void Forget();  // looks nowhere
  // Before a run: places in what it will return for these sets, which are kept (Slot::kept). None on a CPU.
  void Choose(const std::vector<std::size_t>& sets);
  bool chosen() const { return !chosen_.empty(); }
  // At the answer: which of them there are. `where`: an output on the device; null where it is not there.
  void Find(const std::function<const char*(const Output&)>& where);
  bool found() const { return !places_.empty(); }
  void Look();  // what they hold now, in place of what they held before; waits
  // When all is copied: the outputs whose copies are not what was there at the last Look, one for each glance that says
  // so. Ends these glances.
  std::vector<Output> Differing();

 private:
  struct Glance {
    Output output;
    std::size_t offset;  // bytes
  };

  Arena& arena_;
  DeviceOps& ops_;
  Random& random_;
  std::vector<Glance> chosen_;            // once found: those alone
  std::vector<DeviceOps::Place> places_;  // where these are
};

}  // namespace grove::judge
