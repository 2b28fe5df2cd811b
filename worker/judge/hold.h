// Stopping a candidate between timed runs, which the worker does for the judge.
#pragma once

#include <chrono>
#include <functional>

namespace grove::judge {

struct Held {
  bool ok = false;  // holding: it stands; letting go: always
  // Holding: when the worker began to let it go on the last time. None of its threads ran before that, so a run's clock
  // may start there and leaves out how long the request and the worker took. Epoch: the worker did not say.
  std::chrono::steady_clock::time_point let_go;
};

// Stops every process and thread of a candidate (returns once it stands) or lets it go on (returns at once).
using Hold = std::function<Held(bool held)>;

}  // namespace grove::judge
