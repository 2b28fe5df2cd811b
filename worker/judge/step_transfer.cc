#include "worker/judge/step_transfer.h"

#include <algorithm>
#include <optional>

#include "worker/judge/clock.h"
#include "worker/judge/device_steps.h"

namespace grove::judge {
namespace {

// Larger ones take longer to hand over than there is to be seen: on a CPU within the step's time. On a GPU, where a
// call of so much takes some 70 us at least, little can be hidden behind that.
constexpr std::size_t kMostCpu = std::size_t{4} << 20, kMostCuda = std::size_t{256} << 20;

// Of a set's tensors, from the first one on.
std::size_t Span(const Layout& layout) { return layout.places.empty() ? 0 : layout.bytes - layout.places[0].offset; }
std::size_t First(const Layout& layout) { return layout.places.empty() ? 0 : layout.places[0].offset; }

class ThroughMemory : public StepTransfer {
 public:
  ThroughMemory(Arena& arena, const Values& values, DeviceOps& ops)
      : arena_(arena), values_(values), ops_(ops), room_{Span(arena.at(0).in), Span(arena.at(0).out)} {}

  Room room() const override { return room_; }
  void Map(char* inputs, const char* outputs) override {
    in_ = inputs;
    out_ = outputs;
  }
  // A program may need all processors.
  bool sleeps() const override { return true; }

  StepWork Practise(const std::vector<std::size_t>& slots) override {
    return Give(slots, [this](std::size_t slot) { return arena_.at(slot).inputs->data(); });
  }
  StepWork Begin(const std::vector<std::size_t>& sets, bool /*cold*/) override {
    return Give(sets, [this](std::size_t) { return values_.data(); });
  }
  void CopyOutputs(std::size_t i, char* to) override {
    if (room_.outputs > 0) ops_.FromHost(to, outputs_.data() + i * room_.outputs, room_.outputs);
  }

 private:
  // `from`: the piece of memory in which a set's inputs lie as in its slot.
  template <typename From>
  StepWork Give(const std::vector<std::size_t>& sets, const From& from) {
    inputs_.resize(sets.size() * room_.inputs);
    outputs_.resize(sets.size() * room_.outputs);
    for (std::size_t i = 0; i < sets.size() && room_.inputs > 0; ++i) {
      ops_.ToHost(inputs_.data() + i * room_.inputs, from(sets[i]) + First(arena_.at(sets[i]).in), room_.inputs);
    }
    return {.before = [this](std::size_t i) { std::copy_n(inputs_.data() + i * room_.inputs, room_.inputs, in_); },
            .after = [this](std::size_t i) { std::copy_n(out_, room_.outputs, outputs_.data() + i * room_.outputs); }};
  }

  Arena& arena_;
  const Values& values_;
  DeviceOps& ops_;
  const Room room_;
  char* in_ = nullptr;
  const char* out_ = nullptr;
  std::vector<char> inputs_, outputs_;  // of each step behind those of the one before
};

class InSlots : public StepTransfer {
 public:
  InSlots(Arena& arena, const Values& values, DeviceOps& ops, Random& random)
      : arena_(arena), values_(values), ops_(ops), random_(random) {}

  Room room() const override { return {}; }
  void Map(char* /*inputs*/, const char* /*outputs*/) override {}
  bool sleeps() const override { return false; }

  StepWork Practise(const std::vector<std::size_t>& slots) override {
    constexpr std::size_t kHanded = std::size_t{1} << 20;  // bytes of one step of practice
    sets_ = slots;
    // What stands there stays there, guards among it.
    std::vector<DeviceSteps::Places> places;
    for (std::size_t slot : slots) {
      places.push_back(Of(slot));
      places.back().values = places.back().inputs;
    }
    if (handing_ == 0) handing_ = Handing(places.at(0));
    for (DeviceSteps::Places& step : places) step.input_bytes = std::min(step.input_bytes, kHanded);
    return Work(std::move(places), /*cold=*/false);
  }
  void Practised() override { looking_.Practised(); }
  double handing() const override { return handing_; }

  StepWork Begin(const std::vector<std::size_t>& sets, bool cold) override {
    sets_ = sets;
    std::vector<DeviceSteps::Places> places;
    for (std::size_t set : sets) places.push_back(Of(set));
    return Work(std::move(places), cold);
  }
  void CopyOutputs(std::size_t i, char* to) override {
    const Slot& slot = arena_.at(sets_[i]);
    const std::size_t bytes = Span(slot.out);
    if (bytes > 0) ops_.Copy(to, slot.outputs->data() + First(slot.out), bytes);
  }
  std::vector<std::pair<std::size_t, std::size_t>> NotInTime() override {
    ops_.Synchronize();
    std::vector<std::pair<std::size_t, std::size_t>> late;
    for (const auto& [step, output] : steps_->Differing(
             [&](const DeviceSteps::Output& output) { return arena_.at(sets_[output.step]).Output(output.index); })) {
      late.emplace_back(sets_[step], output);
    }
    return late;
  }

 private:
  DeviceSteps::Places Of(std::size_t set) const {
    const Slot& slot = arena_.at(set);
    const std::size_t first = First(slot.in);
    DeviceSteps::Places step{slot.inputs->data() + first, values_.data() + first, Span(slot.in), {}};
    for (const Place& place : slot.out.places) {
      step.outputs.emplace_back(slot.outputs->data() + place.offset, place.bytes);
    }
    return step;
  }

  double Handing(const DeviceSteps::Places& step) {
    constexpr int kTimes = 3;
    DeviceSteps once(ops_, random_, {step});
    double least = 0;
    for (int i = 0; i < kTimes; ++i) {
      const auto begin = Clock::now();
      once.Hand(0);
      once.Look(0);
      least = i == 0 ? Since(begin) : std::min(least, Since(begin));
    }
    return least;
  }

  StepWork Work(std::vector<DeviceSteps::Places> places, bool cold) {
    steps_.emplace(ops_, random_, std::move(places));
    return {.ahead = [this, cold](std::size_t i) { steps_->Hand(i, cold); },
            .behind = [this](std::size_t i) { return looking_.Late(steps_->Look(i)); }};
  }

  Arena& arena_;
  const Values& values_;
  DeviceOps& ops_;
  Random& random_;
  std::vector<std::size_t> sets_;
  std::optional<DeviceSteps> steps_;
  double handing_ = 0;
  LookTimes looking_;
};

}  // namespace

std::unique_ptr<StepTransfer> MakeStepTransfer(Arena& arena, const Values& values, DeviceOps& ops, Random& random) {
  if (Span(arena.at(0).in) + Span(arena.at(0).out) > (ops.cuda() ? kMostCuda : kMostCpu)) return nullptr;
  if (ops.cuda()) return std::make_unique<InSlots>(arena, values, ops, random);
  return std::make_unique<ThroughMemory>(arena, values, ops);
}

}  // namespace grove::judge
