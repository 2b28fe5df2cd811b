// Runs in steps of a candidate: each call gets its inputs when the one before has given its outputs, through memory of
// the host (common/wire/steps.h). docs/timing.md: "Calls in steps".
#pragma once

#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "worker/judge/device_ops.h"
#include "worker/judge/give_steps.h"
#include "worker/judge/random.h"
#include "worker/judge/slots.h"
#include "worker/judge/values.h"

namespace grove::judge {

class CandidateSide;

class CandidateSteps {
 public:
  // Null where inputs and outputs of a call of the timed shapes are too large together, or there is no processor for
  // each side. References outlive it.
  static std::unique_ptr<CandidateSteps> Make(CandidateSide& side, Arena& arena, const Values& values, DeviceOps& ops);

  // Hands the memory to the candidate, behind the arena's; nothing of its program runs for that.
  void Map();
  // What a step costs, before the program is loaded.
  void Learn();
  // What it takes to give a call that does nothing its inputs and to get its outputs. Seconds; 0 = not known.
  double asking(Waiting waiting) const { return waiting == Waiting::kLooking ? looking_ : sleeping_; }
  // Whether both sides may sleep while they wait for each other: on a CPU, where a program may need all processors.
  bool sleeps() const { return !ops_.cuda(); }

  // Before each timed run that is none in steps: the memory looks as if a step had begun and its inputs were those of
  // another call, so that a program that looks there whether it is in one, to do something else then, computes from
  // these. One that looks at what changes there from call to call is not deceived.
  void Pretend(Random* random);

  // These sets, one by one. Seconds that each took, the first to be left out, and their outputs are kept
  // (CandidateSide::Keep); fewer than there are sets where they were not given one at a time: then nothing is kept.
  GivenSteps Run(const std::vector<std::size_t>& sets, Waiting waiting);

 private:
  CandidateSteps(CandidateSide& side, Arena& arena, const Values& values, DeviceOps& ops, std::size_t input_bytes,
                 std::size_t output_bytes);
  char* Word(std::size_t offset) const { return memory_->data() + offset; }
  // Before a run is asked for: none was given, and there are no outputs.
  void None(Waiting waiting);
  // So many steps, the inputs and outputs of each behind those of the one before.
  GivenSteps Give(std::size_t count, Waiting waiting, const char* inputs, char* outputs);

  CandidateSide& side_;
  Arena& arena_;
  const Values& values_;
  DeviceOps& ops_;
  const std::size_t input_bytes_, output_bytes_;  // of one call, from the first tensor on
  const std::unique_ptr<SharedBlock> memory_;
  nlohmann::json practice_;  // where the first slots' inputs and outputs lie, for Conversation::PractiseSteps
  double looking_ = 0, sleeping_ = 0;
};

}  // namespace grove::judge
