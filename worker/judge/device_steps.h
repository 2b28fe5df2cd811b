// What the judge does for the steps of a run on a GPU: it writes a call's inputs to the device itself, before the call
// is given, and looks at its outputs when the call is said to be done. All by copy engines, which are nobody's turn:
// what is at work on the device is not waited for. docs/timing.md: "Calls in steps".
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "worker/judge/device_ops.h"
#include "worker/judge/random.h"

namespace grove::judge {

class DeviceSteps {
 public:
  // Of one step, in the device's memory.
  struct Places {
    char* inputs;        // where the call finds them
    const char* values;  // the judge's own
    std::size_t input_bytes;
    std::vector<std::pair<const char*, std::size_t>> outputs;  // where each is given, and its bytes
  };

  // References outlive it.
  DeviceSteps(DeviceOps& ops, Random& random, std::vector<Places> steps)
      : ops_(ops), random_(random), steps_(std::move(steps)), looks_(steps_.size()) {}

  // Draws where Look will look, and writes the inputs of step i, large ones so that until the end some words are
  // missing all over them; waits. `cold`: no cache holds the others when these come, and small ones come so, too.
  void Hand(std::size_t i, bool cold = false);
  // At once when it is done: what its outputs hold, of large ones a piece; waits. Seconds.
  double Look(std::size_t i);

  struct Output {
    std::size_t step, index;
  };
  // The outputs that held something else then than they do now, where `now` says that their copies are: one for each
  // look that says so.
  std::vector<Output> Differing(const std::function<const char*(const Output&)>& now);

 private:
  struct Window {
    Output output;
    std::size_t offset, bytes;
  };
  // Of one step.
  struct Looks {
    std::vector<Window> where;
    std::vector<DeviceOps::Place> pieces;
    std::vector<char> held;  // by these, one behind the other, when it was done
    bool taken = false;
  };

  Looks ChooseLooks(std::size_t i);

  DeviceOps& ops_;
  Random& random_;
  const std::vector<Places> steps_;
  std::vector<Looks> looks_;
};

// What a look takes: whoever keeps copies waiting, so that they see what comes later, has them in his time.
class LookTimes {
 public:
  // Of the seconds of a look those that belong to its step: none in practice, nor of one that is as long as there.
  double Late(double seconds);
  void Practised();  // what was said until then was practice

 private:
  std::vector<double> practice_;
  double most_ = std::numeric_limits<double>::infinity();
};

}  // namespace grove::judge
