// Runs in steps of a candidate: each call gets its inputs when the one before has given its outputs (step_transfer.h);
// how far they are stands in memory that both share (common/wire/steps.h). docs/timing.md: "Calls in steps".
#pragma once

#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "worker/judge/device_ops.h"
#include "worker/judge/give_steps.h"
#include "worker/judge/random.h"
#include "worker/judge/slots.h"
#include "worker/judge/step_transfer.h"
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
  double handing() const { return transfer_->handing(); }
  bool sleeps() const { return transfer_->sleeps(); }

  // Before each timed run that is none in steps: the memory looks as if a step had begun (and on a CPU its inputs were
  // those of another call), for a program that looks there whether it is in one, to do something else then. One that
  // looks at what changes there from call to call is not deceived.
  void Pretend();

  // These sets, one by one. Seconds that each took, the first to be left out, and their outputs are kept
  // (CandidateSide::Keep); fewer than there are sets where they were not given one at a time: then nothing is kept.
  // `cold`: as StepTransfer::Begin has it.
  GivenSteps Run(const std::vector<std::size_t>& sets, Waiting waiting, bool cold = false);

 private:
  CandidateSteps(CandidateSide& side, Arena& arena);
  void MakeMemory();
  char* Word(std::size_t offset) const { return memory_->data() + offset; }
  // Before a run is asked for: none was given, and there are no outputs.
  void None(Waiting waiting);
  // So many steps, while the candidate is asked for them.
  GivenSteps Give(std::size_t count, Waiting waiting, const StepWork& work);
  // Seconds of each step of one run of practice but the first.
  std::vector<double> Practise(const std::vector<std::size_t>& slots, Waiting waiting, const StepWork& work);

  CandidateSide& side_;
  Arena& arena_;
  Random random_ = Random::Secret();
  std::unique_ptr<StepTransfer> transfer_;
  StepTransfer::Room room_;
  std::unique_ptr<SharedBlock> memory_;
  nlohmann::json practice_;  // where the first slots' inputs and outputs lie, for Conversation::PractiseSteps
  double looking_ = 0, sleeping_ = 0;
};

}  // namespace grove::judge
