#include "worker/judge/side.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <utility>

#include "worker/judge/clock.h"
#include "worker/judge/compare.h"
#include "worker/judge/statistics.h"

namespace grove::judge {
namespace {

// Behind another empty kernel the next one may take so much more.
// (kFinding: where in the results it is to look.)
constexpr double kMoreQuick = 3, kMoreQuickOnce = 30e-6, kFinding = 20e-6;

}  // namespace

void Side::MakeReady(const std::vector<std::size_t>& sets) {
  ready_seconds_ = ops_.Rest(processor(), [&] {
    Hand(sets);
    if (warm_) {
      Warm(sets);
    } else {
      Cool(sets);
    }
  });
}

void Side::Warm(const std::vector<std::size_t>& sets) {
  for (std::size_t set : sets) {
    const auto [at, bytes] = Inputs(set);
    ops_.Touch(at, bytes);
  }
}

void Side::Cool(const std::vector<std::size_t>& sets) {
  ops_.Flush();
  for (std::size_t set : sets) {
    const auto [at, bytes] = Inputs(set);
    ops_.Evict(at, bytes);
  }
  EvictOutputs(sets);
}

void CandidateSide::Prepare(const std::vector<std::size_t>& sets) {
  ready_seconds_ = 0;
  for (std::size_t set : sets) {
    Slot& slot = arena_.at(set);
    slot.leaves = values_.leaves(set);
    slot.spoiled = false;
    slot.waiting = true;
    slot.kept = nullptr;
    arena_.Poison(&slot);
  }
  ops_.Synchronize();
}

std::pair<const char*, std::size_t> CandidateSide::Inputs(std::size_t set) const {
  const Slot& slot = arena_.at(set);
  if (slot.in.places.empty()) return {nullptr, 0};
  const std::size_t first = slot.in.places[0].offset;
  return {slot.inputs->data() + first, slot.in.bytes - first};
}

void CandidateSide::EvictOutputs(const std::vector<std::size_t>& sets) {
  for (std::size_t set : sets) {
    const Slot& slot = arena_.at(set);
    if (slot.out.places.empty()) continue;
    const std::size_t first = slot.out.places[0].offset;
    ops_.Evict(slot.outputs->data() + first, slot.out.bytes - first);
  }
}

double CandidateSide::Run(const std::vector<std::size_t>& sets) {
  if (arena_.Hand(sets, values_.data())) ops_.Synchronize();  // where the run is not timed
  if (steps_ != nullptr) steps_->Pretend();
  glances_.Forget();
  if (keep_ && (reads_ || !python_)) glances_.Choose(keeping_);
  asked_ = Clock::now();
  reply_ = conversation_.RunTimed(
      sets, sets.empty() ? like_ : 0,
      // The clock stops when work of our own has gone through the device, behind whatever it was still doing.
      [this, &sets] { return WaitUntilQuiet(&sets); },
      // The last call's inputs first: what is late is late from the end.
      [this, &sets] {
        if (ops_.cuda()) TakeOutputs(sets);
        for (auto set = sets.rbegin(); set != sets.rend(); ++set) arena_.Spoil(&arena_.at(*set));
        ops_.Synchronize();
      });
  if (!ops_.cuda()) TakeOutputs(sets);
  // What was not there yet is left unwritten.
  for (const auto& [set, output] : glances_.Differing()) LeaveUnwritten(arena_.at(set), output);
  if (keep_ && reads_) {
    constexpr std::size_t kMostWrites = 256;
    returned_->RefuseAliases(result_places_);
    RefuseShared(sets);
    SpoilResults(kMostWrites);
  } else {
    result_places_.clear();  // given back by now, and anything may be there
  }
  keep_ = false;
  // A script says what the last result was where that is not what is wanted.
  if (reads_ && !sets.empty() && reply_.outputs.is_null()) reply_.outputs = AsWanted();
  return reply_.wall;
}

// Two contexts that are both at work take turns: an empty kernel has its own after some milliseconds, and says nothing
// of who goes on behind it. The next one does.
Clock::time_point CandidateSide::WaitUntilQuiet(const std::vector<std::size_t>* ran) {
  // Of the run that it belongs to, and seconds: who goes on for longer is noticed before the reference's run.
  constexpr double kMost = 2, kMostOnce = 50e-3;
  ops_.EmptyRun();
  const auto begin = Clock::now();
  if (!ops_.cuda() || quick_ <= 0) return begin;
  const double most = kMost * std::chrono::duration<double>(begin - asked_).count() + kMostOnce;
  auto quiet = begin;
  // The first from then on, so that there is no moment that nobody watches.
  double quick = quick_;
  auto next = begin;
  if (ran != nullptr) {
    FindGlances(*ran);
    quick += kFinding;
  }
  for (;; next = Clock::now(), quick = quick_) {
    if (ran == nullptr || !glances_.found()) {
      ops_.EmptyRun();
    } else {
      glances_.Look();
    }
    if (Since(next) <= quick) return quiet;
    quiet = Clock::now();
    if (Since(begin) <= most) continue;
    char text[200];
    std::snprintf(text, sizeof text,
                  "the GPU has other work for more than %.3g s after the candidate's answer; either it leaves work "
                  "running, or another process uses this GPU",
                  most);
    throw Verdict{"VERDICT_UNMEASURABLE", text, {}};
  }
}

void CandidateSide::LearnQuick() {
  constexpr int kTimes = 15;
  std::vector<double> behind;
  ops_.EmptyRun();
  ops_.Glance({});  // its code is loaded now
  for (int i = 0; i < kTimes; ++i) {
    const auto begin = Clock::now();
    ops_.EmptyRun();
    behind.push_back(Since(begin));
  }
  quick_ = kMoreQuick * Median(behind) + kMoreQuickOnce;
}

void CandidateSide::SharePlaces(std::size_t calls) {
  if (!python_ || !conversation_.can_hold()) return;
  if (ops_.cuda()) {
    auto pieces = std::make_unique<DeviceResults>(ops_, ops_.Info().value("memory_bytes", std::uint64_t{0}));
    conversation_.SetHearOfMemory(
        [pieces = pieces.get()](std::vector<Piece> fresh, const std::vector<std::uint64_t>& freed) {
          pieces->Hear(std::move(fresh), freed);
        });
    returned_ = std::move(pieces);
  } else if (process_ != nullptr) {
    returned_ = std::make_unique<ProcessResults>(process_);
  }
  if (returned_ != nullptr) arena_.AddResultPlaces(calls);
}

void CandidateSide::ShareSteps() { steps_ = CandidateSteps::Make(*this, arena_, values_, ops_); }

CandidateSide::~CandidateSide() {
  if (returned_ != nullptr) conversation_.SetHearOfMemory([](std::vector<Piece>, const std::vector<std::uint64_t>&) {});
}

std::size_t CandidateSide::MostKept() {
  constexpr std::size_t kMostBytesCpu = std::size_t{256} << 20, kMostBytesCuda = std::size_t{4} << 30;
  constexpr std::size_t kShare = 8;  // of the free memory
  if (most_kept_ == 0) {
    const std::size_t most = std::min(ops_.cuda() ? kMostBytesCuda : kMostBytesCpu, ops_.free_bytes() / kShare);
    most_kept_ = std::max<std::size_t>(most / Stride(arena_.at(0).out), 1);
  }
  return most_kept_;
}

void CandidateSide::Keep(std::vector<std::size_t> sets) {
  if (sets.size() > MostKept()) throw std::logic_error("more outputs are to be kept than there is room for");
  for (std::size_t set : keeping_) arena_.at(set).kept = nullptr;
  keeping_ = std::move(sets);
  keep_ = true;
  const auto bytes = static_cast<std::int64_t>(keeping_.size() * Stride(arena_.at(0).out));
  if (kept_.defined() && kept_.numel() >= bytes) return;
  kept_.reset();
  kept_ = at::empty({bytes}, at::device(ops_.cuda() ? at::kCUDA : at::kCPU).dtype(at::kByte));
}

void CandidateSide::MustHaveKept(const std::vector<std::size_t>& sets) const {
  if (python_ && !reads_) return;  // it has copied them
  for (std::size_t set : sets) {
    if (arena_.at(set).kept == nullptr && !arena_.at(set).out.places.empty()) {
      throw std::logic_error("outputs are looked at that were not kept");
    }
  }
}

void CandidateSide::FindResults(const std::vector<std::size_t>& ran) {
  const std::size_t outputs = arena_.at(ran.front()).out.places.size();
  result_places_.resize(ran.size() * outputs);
  for (std::size_t i = 0; i < result_places_.size(); ++i) {
    result_places_[i] = arena_.ResultPlace(i / outputs, i % outputs);
  }
}

std::vector<std::size_t> CandidateSide::CallOf(const std::vector<std::size_t>& ran) const {
  std::vector<std::size_t> call_of(arena_.size(), ran.size());
  for (std::size_t call = 0; call < ran.size(); ++call) call_of[ran[call]] = call;
  return call_of;
}

void CandidateSide::FindGlances(const std::vector<std::size_t>& ran) {
  if (reads_ && keep_ && !ran.empty()) FindResults(ran);
  if (!glances_.chosen()) return;
  const std::vector<std::size_t> call_of = CallOf(ran);
  glances_.Find([&](const Glances::Output& output) -> const char* {
    const Slot& slot = arena_.at(output.set);
    const Place& place = slot.out.places[output.index];
    if (reads_) {
      const std::uint64_t at = result_places_.at(call_of.at(output.set) * slot.out.places.size() + output.index);
      if (at != kInItsSlot) return returned_->Find(at, place.bytes);
    }
    return slot.outputs->data() + place.offset;
  });
}

void CandidateSide::TakeOutputs(const std::vector<std::size_t>& ran) {
  if (!keep_ || keeping_.empty() || (python_ && !reads_)) return;
  if (reads_) {
    if (!ops_.cuda() && !conversation_.held()) {
      throw std::logic_error("results are read while their process goes on");
    }
    if (!ops_.cuda() || quick_ <= 0) FindResults(ran);  // else at the answer
    returned_->Look();
  }
  const std::vector<std::size_t> call_of = CallOf(ran);
  const std::size_t stride = Stride(arena_.at(0).out);
  char* to = static_cast<char*>(kept_.data_ptr());
  for (std::size_t set : keeping_) {
    const std::size_t call = call_of.at(set);
    if (call == ran.size()) throw std::logic_error("outputs are kept that no run makes");
    Slot& slot = arena_.at(set);
    if (slot.out.places.empty()) continue;
    slot.kept = to;
    for (std::size_t output = 0; output < slot.out.places.size(); ++output) {
      const Place& place = slot.out.places[output];
      if (place.bytes == 0) continue;
      char* its = to + (place.offset - slot.out.places[0].offset);
      const std::size_t at = call * slot.out.places.size() + output;
      if (!reads_ || (ops_.cuda() && result_places_[at] == kInItsSlot)) {
        ops_.Copy(its, slot.outputs->data() + place.offset, place.bytes);
        continue;
      }
      if (!returned_->Read(result_places_[at], its, place.bytes)) LeaveUnwritten(slot, output);
    }
    to += stride;
  }
}

void CandidateSide::LeaveUnwritten(const Slot& slot, std::size_t output) {
  const auto poison = PoisonElement(slot.out.places[output].type, slot.poison);
  ops_.Fill(const_cast<char*>(slot.Output(output)), poison.data(), poison.size(), slot.out.places[output].bytes);
}

void CandidateSide::RefuseShared(const std::vector<std::size_t>& ran) {
  const std::vector<Place>& places = arena_.at(ran.front()).out.places;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < result_places_.size(); ++i) {
    if (result_places_[i] > kInItsSlot && places[i % places.size()].bytes > 0) order.push_back(i);
  }
  std::sort(order.begin(), order.end(),
            [this](std::size_t a, std::size_t b) { return result_places_[a] < result_places_[b]; });
  std::vector<std::size_t> shared;
  std::optional<std::size_t> furthest;  // of those before, the one that ends last
  const auto end = [&](std::size_t i) { return result_places_[i] + places[i % places.size()].bytes; };
  for (std::size_t i : order) {
    if (furthest && result_places_[i] < end(*furthest) && i / places.size() != *furthest / places.size()) {
      shared.push_back(i);
      shared.push_back(*furthest);
    }
    if (!furthest || end(i) > end(*furthest)) furthest = i;
  }
  for (std::size_t i : shared) {
    const Slot& slot = arena_.at(ran[i / places.size()]);
    if (slot.kept != nullptr) LeaveUnwritten(slot, i % places.size());
  }
}

void CandidateSide::SpoilResults(std::size_t most) {
  constexpr std::size_t kPlaces = 4;  // in each output
  const std::vector<Place>& places = arena_.at(0).out.places;
  const std::size_t each = kPlaces * places.size(),
                    calls = result_places_.size() / std::max<std::size_t>(places.size(), 1);
  if (calls == 0) return;
  std::size_t call = random_.Below(calls);
  for (std::size_t spoiled = 0; spoiled < calls && spoiled * each < most; ++spoiled) {
    call = (call + 1) % calls;
    for (std::size_t output = 0; output < places.size(); ++output) {
      const std::uint64_t place = result_places_[call * places.size() + output];
      const auto poison = PoisonElement(places[output].type, static_cast<std::uint32_t>(random_.Next()));
      const std::size_t elements = places[output].bytes / poison.size();
      for (std::size_t i = 0; place != 0 && elements > 0 && i < kPlaces; ++i) {
        returned_->Write(place + random_.Below(elements) * poison.size(), poison.data(), poison.size());
      }
    }
  }
}

// On a GPU somewhere in the results once more, because queued work may have mended what was spoiled.
void CandidateSide::Hand(const std::vector<std::size_t>& sets) {
  constexpr std::size_t kFewWrites = 8;
  if (ops_.cuda() && reads_) SpoilResults(kFewWrites);
  arena_.Hand(sets, values_.data());
}

bool CandidateSide::CanRead() {
  if (returned_ == nullptr) return false;
  float read = 0;
  // Made by practice, and not stored.
  const auto ones = nlohmann::json::array({arena_.result_places_region(), 0, sizeof read});
  conversation_.Practise(
      1, 0, [this] { return WaitUntilQuiet(); }, nlohmann::json::array({ones}));
  if (!conversation_.held()) return false;
  try {
    const at::Tensor there = at::zeros({1}, at::device(ops_.cuda() ? at::kCUDA : at::kCPU).dtype(at::kFloat));
    returned_->Read(arena_.ResultPlace(0, 0), static_cast<char*>(there.data_ptr()), sizeof read);
    ops_.ToHost(&read, there.data_ptr(), sizeof read);
  } catch (const c10::Error&) {  // no memory for this is none for what follows; what is then done says so
    return false;
  }
  return read == 1;
}

std::vector<double> CandidateSide::RunAlone(const std::vector<std::size_t>& sets) {
  Prepare(sets);
  MakeReady(sets);
  return conversation_.RunAlone(sets);
}

nlohmann::json CandidateSide::AsWanted() const {
  nlohmann::json outputs = nlohmann::json::array();
  for (const Place& place : arena_.at(0).out.places) {
    outputs.push_back({{"dtype", place.type.name}, {"shape", place.shape}, {"device", ops_.cuda() ? "cuda" : "cpu"}});
  }
  return outputs;
}

void CandidateSide::TakeGiven(const std::vector<std::size_t>& sets,
                              const std::function<void(std::size_t, char*)>& write) {
  Keep(sets);
  keep_ = false;
  const std::size_t stride = Stride(arena_.at(0).out);
  for (std::size_t i = 0; i < sets.size(); ++i) {
    char* to = static_cast<char*>(kept_.data_ptr()) + i * stride;
    write(i, to);
    arena_.at(sets[i]).kept = to;
  }
  result_places_.clear();
  reply_ = {};
  if (python_) reply_.outputs = AsWanted();
}

double CandidateSide::Collect(const std::vector<std::size_t>& sets) {
  double quieting = 0;
  if (ops_.cuda()) {
    // What waits on a stream for what the judge does at the answer begins by itself.
    const auto begin = Clock::now();
    WaitUntilQuiet();
    quieting = Since(begin);
  }
  // What a process asked of the kernel goes on after its answer, until it stands.
  const double late = (ops_.cuda() ? asking_.LateHanding(ready_seconds_, sets.size()) : 0) +
                      asking_.LateStopping(conversation_.stopping()) + asking_.LateQuieting(quieting);
  if (!python_ || reads_) return late;
  const Reply stored = conversation_.Store(sets);
  reply_.outputs = stored.outputs;
  return late + asking_.LateStoring(stored.wall, sets.size());
}

double CandidateSide::AskForNothing() {
  MakeReady({});
  return Run({});
}

double CandidateSide::Practise(std::size_t calls) {
  MakeReady({});
  asked_ = Clock::now();
  return conversation_.Practise(calls, like_, [this] { return WaitUntilQuiet(); });
}

void CandidateSide::LearnAsking(const RunLengths& lengths, int times, const std::function<void()>& between) {
  like_ = lengths.most;
  conversation_.HoldBetweenRuns(true);
  reads_ = CanRead();
  if (!reads_ && returned_ != nullptr) {
    conversation_.SetHearOfMemory([](std::vector<Piece>, const std::vector<std::uint64_t>&) {});
    returned_.reset();
  }
  if (ops_.cuda()) LearnQuick();
  asking_.Learn(lengths, times, between);
  if (steps_ != nullptr) steps_->Learn();
  conversation_.HoldBetweenRuns(false);
}

}  // namespace grove::judge
