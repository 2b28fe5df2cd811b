// Runs in steps of a candidate: each call gets its inputs when the one before has given its outputs, on a CPU through
// memory that both share (common/wire/steps.h), on a GPU in its slot (device_steps.h). docs/timing.md: "Calls in
// steps".
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "worker/judge/device_ops.h"
#include "worker/judge/device_steps.h"
#include "worker/judge/give_steps.h"
#include "worker/judge/random.h"
#include "worker/judge/slots.h"
#include "worker/judge/values.h"

namespace grove::judge {

class CandidateSide;

class CandidateSteps {
 public:
  static constexpr std::size_t kMost = 24;  // that are asked for in one run

  // Null where inputs and outputs of a call of the timed shapes are too large together, or there is no processor for
  // each side. References outlive it.
  static std::unique_ptr<CandidateSteps> Make(CandidateSide& side, Arena& arena, const Values& values, DeviceOps& ops);

  // Hands the memory to the candidate, behind the arena's; nothing of its program runs for that.
  void Map();
  // What a step costs, before the program is loaded.
  void Learn();
  // What it takes to give a call that does nothing its inputs and to get its outputs (on a GPU: to say that the inputs
  // are there, and to hear that the outputs are). Seconds; 0 = not known.
  double asking(Waiting waiting) const { return waiting == Waiting::kLooking ? looking_ : sleeping_; }
  // What a step takes besides, on nobody's clock. Seconds.
  double handing() const { return handing_; }
  // Whether both sides may sleep while they wait for each other: on a CPU, where a program may need all processors.
  bool sleeps() const { return !ops_.cuda(); }

  // Before each timed run that is none in steps: the memory looks as if a step had begun (and on a CPU its inputs were
  // those of another call), for a program that looks there whether it is in one, to do something else then. One that
  // looks at what changes there from call to call is not deceived.
  void Pretend();

  // These sets, one by one. Seconds that each took, the first to be left out, and their outputs are kept
  // (CandidateSide::Keep); fewer than there are sets where they were not given one at a time: then nothing is kept.
  GivenSteps Run(const std::vector<std::size_t>& sets, Waiting waiting);

 private:
  CandidateSteps(CandidateSide& side, Arena& arena, const Values& values, DeviceOps& ops, std::size_t input_bytes,
                 std::size_t output_bytes);
  char* Word(std::size_t offset) const { return memory_->data() + offset; }
  // Before a run is asked for: none was given, and there are no outputs.
  void None(Waiting waiting);
  // So many steps, while the candidate is asked for them.
  GivenSteps Give(std::size_t count, Waiting waiting, const StepWork& work);
  // The inputs and outputs of each step behind those of the one before.
  StepWork ThroughMemory(const char* inputs, char* outputs);
  // `late`: of the seconds of a look those that belong to its step.
  static StepWork ThroughDevice(DeviceSteps* steps, const std::function<double(double)>& late);
  // Where the steps of these sets have their inputs and outputs on a GPU.
  std::vector<DeviceSteps::Places> OnDevice(const std::vector<std::size_t>& sets) const;
  // Seconds of each step of one run of practice but the first.
  std::vector<double> Practise(const std::vector<std::size_t>& slots, Waiting waiting, const StepWork& work);
  GivenSteps Ask(const std::vector<std::size_t>& sets, Waiting waiting, const StepWork& work);

  CandidateSide& side_;
  Arena& arena_;
  const Values& values_;
  DeviceOps& ops_;
  const std::size_t input_bytes_, output_bytes_;  // of one call, from the first tensor on
  const std::size_t input_room_, output_room_;    // for them in the memory: none on a GPU
  const std::unique_ptr<SharedBlock> memory_;
  nlohmann::json practice_;  // where the first slots' inputs and outputs lie, for Conversation::PractiseSteps
  Random random_ = Random::Secret();
  double looking_ = 0, sleeping_ = 0, handing_ = 0, most_looking_ = 0;
};

}  // namespace grove::judge
