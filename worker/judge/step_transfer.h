// How the inputs of a call in steps come to where the candidate finds them, and how its outputs are taken: on a CPU
// through memory of the host that both share, on a GPU in the slots themselves. docs/timing.md: "Calls in steps".
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "worker/judge/device_ops.h"
#include "worker/judge/give_steps.h"
#include "worker/judge/slots.h"
#include "worker/judge/values.h"

namespace grove::judge {

class Random;

class StepTransfer {
 public:
  virtual ~StepTransfer() = default;

  // Bytes of the inputs and outputs of one call that lie in the shared memory (common/wire/steps.h).
  struct Room {
    std::size_t inputs = 0, outputs = 0;
  };
  virtual Room room() const = 0;
  // Where that memory has them: before anything else.
  virtual void Map(char* inputs, const char* outputs) = 0;
  // Whether both sides may sleep while they wait for each other.
  virtual bool sleeps() const = 0;

  // For steps of practice in these slots, with what lies there; good until the next one.
  virtual StepWork Practise(const std::vector<std::size_t>& slots) = 0;
  // When practice is over.
  virtual void Practised() {}
  // What a step takes besides, on nobody's clock: known by practice. Seconds.
  virtual double handing() const { return 0; }

  // For steps of these sets, with their values; good until the next one. `cold`: on a GPU no cache holds the inputs,
  // but for the few that come last.
  virtual StepWork Begin(const std::vector<std::size_t>& sets, bool cold) = 0;
  // When all of them are done: queues a copy of the i-th one's outputs.
  virtual void CopyOutputs(std::size_t i, char* to) = 0;
  // Behind that: the set and output that were not there when the step was said to be done.
  virtual std::vector<std::pair<std::size_t, std::size_t>> NotInTime() { return {}; }
};

// Null where inputs and outputs of a call of the timed shapes are too large together. References outlive it.
std::unique_ptr<StepTransfer> MakeStepTransfer(Arena& arena, const Values& values, DeviceOps& ops, Random& random);

}  // namespace grove::judge
