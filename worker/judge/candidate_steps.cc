#include "worker/judge/candidate_steps.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/wire/steps.h"
#include "worker/judge/memory_file.h"
#include "worker/judge/side.h"
#include "worker/judge/statistics.h"

namespace grove::judge {
namespace {

using nlohmann::json;

constexpr std::size_t kMostPractised = 16;  // steps of a run of practice

}  // namespace

std::unique_ptr<CandidateSteps> CandidateSteps::Make(CandidateSide& side, Arena& arena, const Values& values,
                                                     DeviceOps& ops) {
#ifndef __x86_64__
  if (side.python()) return nullptr;  // a script cannot say in which order its words are seen
#endif
  if (!ProcessorsForSteps()) return nullptr;
  std::unique_ptr<CandidateSteps> steps(new CandidateSteps(side, arena));
  steps->transfer_ = MakeStepTransfer(arena, values, ops, steps->random_);
  if (steps->transfer_ == nullptr) return nullptr;
  steps->MakeMemory();
  return steps;
}

CandidateSteps::CandidateSteps(CandidateSide& side, Arena& arena) : side_(side), arena_(arena) {
  // Slots of other shapes, which are checked and not timed, come behind.
  for (std::size_t i = 0; i < arena.size() && practice_.size() < kMostPractised; ++i) {
    const Slot& slot = arena.at(i);
    if (slot.shape_set != arena.at(0).shape_set) break;
    json outputs = json::array();
    for (const Place& place : slot.out.places) outputs.push_back({slot.out_region, place.offset, place.bytes});
    json places{{"outputs", outputs}};
    if (!slot.in.places.empty()) places["inputs"] = {slot.in_region, slot.in.places[0].offset};
    practice_.push_back(std::move(places));
  }
}

void CandidateSteps::MakeMemory() {
  room_ = transfer_->room();
  memory_ = MakeMemoryFile(wire::StepsOutputs(room_.inputs) + std::max<std::size_t>(room_.outputs, 1));
  std::fill_n(memory_->data(), memory_->bytes(), '\0');
  transfer_->Map(Word(wire::kStepsInputs), Word(wire::StepsOutputs(room_.inputs)));
}

void CandidateSteps::Map() {
  const int fd = memory_->fd();
  side_.conversation().Send(
      {{"type", "steps"}, {"bytes", memory_->bytes()}, {"inputs", room_.inputs}, {"outputs", room_.outputs}}, {&fd, 1});
  side_.conversation().Receive("ok");
}

void CandidateSteps::None(Waiting waiting) {
  std::fill_n(Word(wire::StepsOutputs(room_.inputs)), room_.outputs, '\xff');  // NaN, -1
  wire::SetStep(Word(wire::kStepsGiven), 0);
  wire::SetStep(Word(wire::kStepsDone), 0);
  wire::SetStep(Word(wire::kStepsSleeping), waiting == Waiting::kSleeping ? 1 : 0);
}

GivenSteps CandidateSteps::Give(std::size_t count, Waiting waiting, const StepWork& work) {
  constexpr double kLongest = 10;  // seconds of one: those that are asked for are short
  Conversation& conversation = side_.conversation();
  return GiveSteps({Word(wire::kStepsGiven), Word(wire::kStepsDone)}, count, side_.processor(), waiting, kLongest, work,
                   [&conversation] { return conversation.HasSpoken() || conversation.Left() <= 0; });
}

std::vector<double> CandidateSteps::Practise(const std::vector<std::size_t>& slots, Waiting waiting,
                                             const StepWork& work) {
  side_.MakeReady(slots);
  None(waiting);
  std::vector<double> seconds;
  side_.conversation().PractiseSteps(practice_, [&] { seconds = Give(slots.size(), waiting, work).seconds; });
  // Of each run the first step wakes up.
  if (!seconds.empty()) seconds.erase(seconds.begin());
  return seconds;
}

void CandidateSteps::Learn() {
  constexpr int kTimes = 5;
  std::vector<std::size_t> slots(practice_.size());
  std::iota(slots.begin(), slots.end(), 0);
  const StepWork work = transfer_->Practise(slots);
  const auto learn = [&](Waiting waiting) {
    Practise(slots, waiting, work);  // pages are touched
    std::vector<double> all;
    for (int i = 1; i < kTimes; ++i) {
      const std::vector<double> seconds = Practise(slots, waiting, work);
      all.insert(all.end(), seconds.begin(), seconds.end());
    }
    // The machine was busy in the others.
    return all.empty() ? 0 : Quantile(all, 0.25);
  };
  looking_ = learn(Waiting::kLooking);
  if (sleeps()) sleeping_ = learn(Waiting::kSleeping);
  transfer_->Practised();
}

void CandidateSteps::Pretend() {
  const std::uint64_t done = random_.Below(kMost);
  wire::SetStep(Word(wire::kStepsDone), done);
  wire::SetStep(Word(wire::kStepsGiven), done + 1);
}

GivenSteps CandidateSteps::Run(const std::vector<std::size_t>& sets, Waiting waiting, bool cold) {
  side_.Prepare(sets);
  for (std::size_t set : sets) arena_.at(set).waiting = false;  // for Hand: inputs come by the steps alone
  const StepWork work = transfer_->Begin(sets, cold);
  side_.MakeReady(sets);
  None(waiting);
  GivenSteps given;
  side_.conversation().RunInSteps(sets, [&] { given = Give(sets.size(), waiting, work); });
  if (given.seconds.size() != sets.size()) return given;
  side_.TakeGiven(sets, [this](std::size_t i, char* to) { transfer_->CopyOutputs(i, to); });
  // What was not there when the step was said to be done is left unwritten.
  for (const auto& [set, output] : transfer_->NotInTime()) side_.LeaveUnwritten(arena_.at(set), output);
  return given;
}

}  // namespace grove::judge
