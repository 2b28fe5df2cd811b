#include "worker/judge/candidate_steps.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "common/wire/steps.h"
#include "worker/judge/clock.h"
#include "worker/judge/memory_file.h"
#include "worker/judge/side.h"
#include "worker/judge/statistics.h"

namespace grove::judge {
namespace {

using nlohmann::json;

// Larger ones take longer to hand over than there is to be seen: on a CPU within the step's time. On a GPU, where a
// call of so much takes some 70 us at least, little can be hidden behind that.
constexpr std::size_t kMostCpu = std::size_t{4} << 20, kMostCuda = std::size_t{256} << 20;
constexpr std::size_t kMostPractised = 16;  // steps of a run of practice
constexpr double kMoreLooking = 2;          // a look may take so many times what nine of ten took in practice

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
      input_room_(ops.cuda() ? 0 : input_bytes),
      output_room_(ops.cuda() ? 0 : output_bytes),
      memory_(MakeMemoryFile(wire::StepsOutputs(input_room_) + std::max<std::size_t>(output_room_, 1))) {
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
      {{"type", "steps"}, {"bytes", memory_->bytes()}, {"inputs", input_room_}, {"outputs", output_room_}}, {&fd, 1});
  side_.conversation().Receive("ok");
}

void CandidateSteps::None(Waiting waiting) {
  std::fill_n(Word(wire::StepsOutputs(input_room_)), output_room_, '\xff');  // NaN, -1
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

StepWork CandidateSteps::ThroughMemory(const char* inputs, char* outputs) {
  char* const in = Word(wire::kStepsInputs);
  const char* const out = Word(wire::StepsOutputs(input_room_));
  return {.before = [=, this](std::size_t i) { std::copy_n(inputs + i * input_room_, input_room_, in); },
          .after = [=, this](std::size_t i) { std::copy_n(out, output_room_, outputs + i * output_room_); }};
}

StepWork CandidateSteps::ThroughDevice(DeviceSteps* steps, const std::function<double(double)>& late) {
  return {.ahead = [=](std::size_t i) { steps->Hand(i); },
          .behind = [=](std::size_t i) { return late(steps->Look(i)); }};
}

std::vector<DeviceSteps::Places> CandidateSteps::OnDevice(const std::vector<std::size_t>& sets) const {
  std::vector<DeviceSteps::Places> steps;
  for (std::size_t set : sets) {
    const Slot& slot = arena_.at(set);
    const std::size_t first = slot.in.places.empty() ? 0 : slot.in.places[0].offset;
    DeviceSteps::Places step{slot.inputs->data() + first, values_.data() + first, input_bytes_, {}};
    for (const Place& place : slot.out.places) {
      step.outputs.emplace_back(slot.outputs->data() + place.offset, place.bytes);
    }
    steps.push_back(std::move(step));
  }
  return steps;
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
  constexpr std::size_t kHanded = std::size_t{1} << 20;  // bytes of one step of practice on a GPU
  std::vector<std::size_t> slots(practice_.size());
  std::iota(slots.begin(), slots.end(), 0);
  std::vector<char> inputs(slots.size() * input_room_), outputs(slots.size() * output_room_);
  StepWork work;
  std::optional<DeviceSteps> on_device;
  std::vector<double> lookings;
  if (ops_.cuda()) {
    // What stands there stays there, guards among it.
    std::vector<DeviceSteps::Places> steps = OnDevice(slots);
    for (DeviceSteps::Places& step : steps) step.values = step.inputs;
    DeviceSteps once(ops_, random_, {steps.at(0)});
    constexpr int kOnce = 3;
    for (int i = 0; i < kOnce; ++i) {
      const auto begin = Clock::now();
      once.Hand(0);
      once.Look(0);
      handing_ = i == 0 ? Since(begin) : std::min(handing_, Since(begin));
    }
    for (DeviceSteps::Places& step : steps) step.input_bytes = std::min(step.input_bytes, kHanded);
    on_device.emplace(ops_, random_, std::move(steps));
    work = ThroughDevice(&*on_device, [&lookings](double looking) {
      lookings.push_back(looking);
      return 0.0;
    });
  } else {
    work = ThroughMemory(inputs.data(), outputs.data());
    for (std::size_t i = 0; i < slots.size() && input_room_ > 0; ++i) {
      const Slot& slot = arena_.at(i);
      ops_.ToHost(inputs.data() + i * input_room_, slot.inputs->data() + slot.in.places[0].offset, input_room_);
    }
  }
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
  if (!lookings.empty()) most_looking_ = kMoreLooking * Quantile(lookings, 0.9);
  if (sleeps()) sleeping_ = learn(Waiting::kSleeping);
}

void CandidateSteps::Pretend() {
  const std::uint64_t done = random_.Below(kMost);
  wire::SetStep(Word(wire::kStepsDone), done);
  wire::SetStep(Word(wire::kStepsGiven), done + 1);
}

GivenSteps CandidateSteps::Ask(const std::vector<std::size_t>& sets, Waiting waiting, const StepWork& work) {
  side_.MakeReady(sets);
  None(waiting);
  GivenSteps given;
  side_.conversation().RunInSteps(sets, [&] { given = Give(sets.size(), waiting, work); });
  return given;
}

GivenSteps CandidateSteps::Run(const std::vector<std::size_t>& sets, Waiting waiting) {
  side_.Prepare(sets);
  for (std::size_t set : sets) arena_.at(set).waiting = false;  // for Hand: inputs come by the steps alone
  if (ops_.cuda()) {
    DeviceSteps steps(ops_, random_, OnDevice(sets));
    // Whoever keeps copies waiting, so that they see what comes later, has them in his time.
    const auto late = [this](double looking) { return looking > most_looking_ ? looking : 0.0; };
    GivenSteps given = Ask(sets, waiting, ThroughDevice(&steps, late));
    if (given.seconds.size() != sets.size()) return given;
    side_.TakeGiven(sets, [&](std::size_t i, char* to) {
      const Slot& slot = arena_.at(sets[i]);
      if (output_bytes_ > 0) ops_.Copy(to, slot.outputs->data() + slot.out.places[0].offset, output_bytes_);
    });
    ops_.Synchronize();
    // What was not there when the step was said to be done is left unwritten.
    for (const auto& [step, output] : steps.Differing(
             [&](const DeviceSteps::Output& output) { return arena_.at(sets[output.step]).Output(output.index); })) {
      side_.LeaveUnwritten(arena_.at(sets[step]), output);
    }
    return given;
  }
  std::vector<char> inputs(sets.size() * input_room_), outputs(sets.size() * output_room_);
  for (std::size_t i = 0; i < sets.size() && input_room_ > 0; ++i) {
    const std::size_t first = arena_.at(sets[i]).in.places[0].offset;
    ops_.ToHost(inputs.data() + i * input_room_, values_.data() + first, input_room_);
  }
  GivenSteps given = Ask(sets, waiting, ThroughMemory(inputs.data(), outputs.data()));
  if (given.seconds.size() == sets.size()) {
    side_.TakeGiven(sets, [&](std::size_t i, char* to) {
      if (output_room_ > 0) ops_.FromHost(to, outputs.data() + i * output_room_, output_room_);
    });
  }
  return given;
}

}  // namespace grove::judge
