// Stopping a candidate between timed runs, which the worker does for the judge.
#pragma once

#include <chrono>
#include <functional>

namespace grove::judge {

struct Held {
  bool ok = false;     // holding: it stands; letting go: always
  bool placed = true;  // it is where it was asked to be
  // Holding: when the worker began to let it go on the last time. None of its threads ran before that, so a run's clock
  // may start there and leaves out how long the request and the worker took. Epoch: the worker did not say.
  std::chrono::steady_clock::time_point let_go;
  std::chrono::steady_clock::time_point stood;  // holding: when it did
};

// Stops every process and thread of a candidate (returns once it stands) or lets it go on (returns at once). Stopping,
// also what stands already: the first thread of each of its processes is to run on `processor` of the host alone from
// then on; kAnyProcessor = on any of them again, kSameProcessor = as it is.
inline constexpr int kAnyProcessor = -1, kSameProcessor = -2;
// `meanwhile`: done while it is being stopped; may be empty.
using Hold = std::function<Held(bool held, int processor, const std::function<void()>& meanwhile)>;

}  // namespace grove::judge
