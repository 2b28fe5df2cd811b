#include "worker/judge/candidate_steps.h"

#include <algorithm>

#include "common/wire/steps.h"
#include "worker/judge/memory_file.h"
#include "worker/judge/side.h"
#include "worker/judge/statistics.h"

namespace grove::judge {
namespace {

using nlohmann::json;

// Larger ones take longer to hand over than there is to be seen.
constexpr std::size_t kMostCpu = std::size_t{4} << 20, kMostCuda = std::size_t{1} << 20;
constexpr std::size_t kMostPractised = 16;  // steps of a run of practice

std::size_t Span(const Layout& layout) { return layout.places.empty() ? 0 : layout.bytes - layout.places[0].offset; }

}  // namespace

std::unique_ptr<CandidateSteps> CandidateSteps::Make(CandidateSide& side, Arena& arena, const Values& values,
                                                     DeviceOps& ops) {
#ifndef __x86_64__
  if (side.python()) return nullptr;  // a script cannot say in which order its words are seen
#endif
  const std::size_t in = Span(arena.at(0).in), out = Span(arena.at(0).out);
  if (in + out > (ops.cuda() ? kMostCuda : kMostCpu) || !ProcessorsForSteps()) return nullptr;
  return std::unique_ptr<CandidateSteps>(new CandidateSteps(side, arena, values, ops, in, out));
}

CandidateSteps::CandidateSteps(CandidateSide& side, Arena& arena, const Values& values, DeviceOps& ops,
                               std::size_t input_bytes, std::size_t output_bytes)
    : side_(side),
      arena_(arena),
      values_(values),
      ops_(ops),
      input_bytes_(input_bytes),
      output_bytes_(output_bytes),
      memory_(MakeMemoryFile(wire::StepsOutputs(input_bytes) + std::max<std::size_t>(output_bytes, 1))) {
  std::fill_n(memory_->data(), memory_->bytes(), '\0');
  // Slots of other shapes, which are checked and not timed, come behind.
  for (std::size_t i = 0; i < arena.size() && practice_.size() < kMostPractised; ++i) {
    const Slot& slot = arena.at(i);
    if (slot.shape_set != arena.at(0).shape_set) break;
    json outputs = json::array();
    for (const Place& place : slot.out.places) outputs.push_back({slot.out_region, place.offset, place.bytes});
    json places{{"outputs", outputs}};
    if (input_bytes_ > 0) places["inputs"] = {slot.in_region, slot.in.places[0].offset};
    practice_.push_back(std::move(places));
  }
}

void CandidateSteps::Map() {
  const int fd = memory_->fd();
  side_.conversation().Send(
      {{"type", "steps"}, {"bytes", memory_->bytes()}, {"inputs", input_bytes_}, {"outputs", output_bytes_}}, {&fd, 1});
  side_.conversation().Receive("ok");
}

void CandidateSteps::None(Waiting waiting) {
  std::fill_n(Word(wire::StepsOutputs(input_bytes_)), output_bytes_, '\xff');  // NaN, -1
  wire::SetStep(Word(wire::kStepsGiven), 0);
  wire::SetStep(Word(wire::kStepsDone), 0);
  wire::SetStep(Word(wire::kStepsSleeping), waiting == Waiting::kSleeping ? 1 : 0);
}

GivenSteps CandidateSteps::Give(std::size_t count, Waiting waiting, const char* inputs, char* outputs) {
  constexpr double kMost = 10;  // seconds of one: those that are asked for are short
  char* const in = Word(wire::kStepsInputs);
  const char* const out = Word(wire::StepsOutputs(input_bytes_));
  Conversation& conversation = side_.conversation();
  return GiveSteps(
      {Word(wire::kStepsGiven), Word(wire::kStepsDone)}, count, side_.processor(), waiting, kMost,
      [&](std::size_t i) { std::copy_n(inputs + i * input_bytes_, input_bytes_, in); },
      [&](std::size_t i) { std::copy_n(out, output_bytes_, outputs + i * output_bytes_); },
      [&conversation] { return conversation.HasSpoken() || conversation.Left() <= 0; });
}

void CandidateSteps::Learn() {
  constexpr int kTimes = 5;
  std::vector<std::size_t> slots;
  std::vector<char> inputs(practice_.size() * input_bytes_), outputs(practice_.size() * output_bytes_);
  for (std::size_t i = 0; i < practice_.size(); ++i) {
    slots.push_back(i);
    if (input_bytes_ == 0) continue;
    // What stands there stays there, guards among it.
    const Slot& slot = arena_.at(i);
    ops_.ToHost(inputs.data() + i * input_bytes_, slot.inputs->data() + slot.in.places[0].offset, input_bytes_);
  }
  const auto learn = [&](Waiting waiting) {
    std::vector<double> all;
    for (int i = 0; i < kTimes; ++i) {
      side_.MakeReady(slots);
      None(waiting);
      std::vector<double> seconds;
      side_.conversation().PractiseSteps(
          practice_, [&] { seconds = Give(slots.size(), waiting, inputs.data(), outputs.data()).seconds; });
      // The first time pages are touched, and of each run the first step wakes up.
      if (i > 0 && !seconds.empty()) all.insert(all.end(), seconds.begin() + 1, seconds.end());
    }
    // The machine was busy in the others.
    return all.empty() ? 0 : Quantile(all, 0.25);
  };
  looking_ = learn(Waiting::kLooking);
  if (sleeps()) sleeping_ = learn(Waiting::kSleeping);
}

void CandidateSteps::Pretend(Random* random) {
  constexpr std::uint64_t kMost = 24;  // as of those that are asked for
  const std::uint64_t done = random->Below(kMost);
  wire::SetStep(Word(wire::kStepsDone), done);
  wire::SetStep(Word(wire::kStepsGiven), done + 1);
}

GivenSteps CandidateSteps::Run(const std::vector<std::size_t>& sets, Waiting waiting) {
  side_.Prepare(sets);
  std::vector<char> inputs(sets.size() * input_bytes_), outputs(sets.size() * output_bytes_);
  for (std::size_t i = 0; i < sets.size(); ++i) {
    Slot& slot = arena_.at(sets[i]);
    slot.waiting = false;  // for Hand: they come by the steps alone
    if (input_bytes_ > 0) {
      ops_.ToHost(inputs.data() + i * input_bytes_, values_.data() + slot.in.places[0].offset, input_bytes_);
    }
  }
  side_.MakeReady(sets);
  None(waiting);
  GivenSteps given;
  side_.conversation().RunInSteps(sets, [&] { given = Give(sets.size(), waiting, inputs.data(), outputs.data()); });
  if (given.seconds.size() == sets.size()) side_.TakeGiven(sets, outputs);
  return given;
}

}  // namespace grove::judge
