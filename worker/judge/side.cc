#include "worker/judge/side.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "worker/judge/clock.h"
#include "worker/judge/compare.h"
#include "worker/judge/statistics.h"

namespace grove::judge {
namespace {

// Storing by a candidate may take this many times what it took a process that computes nothing: other caches, another
// state of the allocator.
constexpr double kMoreStoring = 1.25;
// So may the inputs, and a moment for what else the judge's host does.
constexpr double kMoreHanding = 1.05, kMoreHandingOnce = 50e-6;
// Behind another empty kernel the next one may take so much more, and to wait until all is quiet.
// (kFinding: where in the results it is to look.)
constexpr double kMoreQuick = 3, kMoreQuickOnce = 30e-6, kFinding = 20e-6, kMoreQuieting = 1.25,
                 kMoreQuietingOnce = 50e-6;
// And standing still: a busy machine takes its time.
constexpr double kMoreStopping = 2, kMoreStoppingOnce = 200e-6;
// Where what it makes of its results until then is taken for them: no more than that stopping is not always the same.
constexpr double kMoreOwnStopping = 1.25, kMoreOwnStoppingOnce = 50e-6;
// By which asking may have become dearer since then: of itself, seconds, and of a run.
constexpr double kMoreAsking = 0.25, kMoreWaking = 30e-6, kMoreOfRun = 0.05;
// About as long as it is between two timed runs on a GPU, and how often practice comes after as much; seconds of a run
// below which it does for native kernels, too.
constexpr std::chrono::milliseconds kRested{25};
constexpr int kRestedTimes = 5;
constexpr double kShortRun = 5e-3;
// Of longer practice: calls, whose results are kept, of so many bytes each.
constexpr std::size_t kMostPractised = 64, kPractisedBytes = std::size_t{32} << 20;

}  // namespace

void Side::MakeReady(const std::vector<std::size_t>& sets) {
  const auto fill = [&] {
    Hand(sets);
    if (warm_) {
      Warm(sets);
    } else {
      Cool(sets);
    }
  };
  // A CPU's caches are emptied line by line, and its processors are to be awake at the end. On a GPU nothing may come
  // between the inputs and the run.
  if (ops_.cuda()) {
    ops_.Rest(processor());
    fill();
  } else {
    fill();
    ops_.Rest(processor());
  }
  ready_seconds_ = ops_.Settle();
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
  ChooseGlances();
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
  CompareGlances();
  if (keep_ && reads_) {
    constexpr std::size_t kMostWrites = 256;
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
    if (ran == nullptr || glances_.empty()) {
      ops_.EmptyRun();
    } else {
      ops_.Glance(glances_);
      ops_.Synchronize();
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

// What comes after the clock has stopped and before all is copied: copying large outputs takes as long as making them,
// and a kernel that is at work on the device is not interrupted for it. Where, is drawn before the run.
void CandidateSide::ChooseGlances() {
  glances_.clear();
  glanced_.clear();
  if (!ops_.cuda() || !keep_ || keeping_.empty() || (python_ && !reads_)) return;
  constexpr std::size_t kEachOnce = DeviceOps::kMostGlances / 2;
  const std::vector<Place>& places = arena_.at(keeping_[0]).out.places;
  std::uint64_t bytes = 0;
  for (const Place& place : places) bytes += place.bytes;
  if (bytes == 0) return;
  for (std::size_t i = 0; i < DeviceOps::kMostGlances; ++i) {
    Glance glance{keeping_[random_.Below(keeping_.size())], 0, 0};
    if (keeping_.size() * places.size() <= kEachOnce && i < keeping_.size() * places.size()) {
      glance.set = keeping_[i / places.size()];
      glance.output = i % places.size();
    } else {
      for (std::uint64_t at = random_.Below(bytes); at >= places[glance.output].bytes; ++glance.output) {
        at -= places[glance.output].bytes;
      }
    }
    const std::size_t its = places[glance.output].bytes;
    if (its == 0) continue;
    glance.offset = random_.Below(its - std::min(its, DeviceOps::kGlanceBytes) + 1);
    glanced_.push_back(glance);
  }
}

void CandidateSide::FindGlances(const std::vector<std::size_t>& ran) {
  if (reads_ && keep_ && !ran.empty()) FindResults(ran);
  if (glanced_.empty()) return;
  const std::vector<std::size_t> call_of = CallOf(ran);
  std::vector<Glance> found;
  for (const Glance& glance : glanced_) {
    const Slot& slot = arena_.at(glance.set);
    const Place& place = slot.out.places[glance.output];
    const char* its = slot.outputs->data() + place.offset;
    if (reads_) {
      const std::uint64_t at = result_places_.at(call_of.at(glance.set) * slot.out.places.size() + glance.output);
      if (at != kInItsSlot) its = returned_->Find(at, place.bytes);
    }
    if (its == nullptr) continue;
    found.push_back(glance);
    glances_.push_back({its + glance.offset, std::min(place.bytes, DeviceOps::kGlanceBytes)});
  }
  glanced_ = std::move(found);
}

// What was not there yet is left unwritten.
void CandidateSide::CompareGlances() {
  if (glances_.empty()) return;
  constexpr std::size_t kBytes = DeviceOps::kMostGlances * DeviceOps::kGlanceBytes;
  std::vector<unsigned char> then(kBytes), now(kBytes);
  ops_.Glanced(then.data());
  for (std::size_t i = 0; i < glances_.size(); ++i) {
    const Slot& slot = arena_.at(glanced_[i].set);
    const Place& place = slot.out.places[glanced_[i].output];
    glances_[i].at = slot.kept + (place.offset - slot.out.places[0].offset) + glanced_[i].offset;
  }
  ops_.Glance(glances_);
  ops_.Glanced(now.data());
  for (std::size_t i = 0; i < glances_.size(); ++i) {
    const std::size_t at = i * DeviceOps::kGlanceBytes;
    if (std::memcmp(&then[at], &now[at], glances_[i].bytes) != 0) {
      LeaveUnwritten(arena_.at(glanced_[i].set), glanced_[i].output);
    }
  }
  glances_.clear();
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

void CandidateSide::TakeGiven(const std::vector<std::size_t>& sets, const std::vector<char>& outputs) {
  Keep(sets);
  keep_ = false;
  const std::size_t stride = Stride(arena_.at(0).out), each = outputs.size() / std::max<std::size_t>(sets.size(), 1);
  for (std::size_t i = 0; i < sets.size(); ++i) {
    char* to = static_cast<char*>(kept_.data_ptr()) + i * stride;
    if (each > 0) ops_.FromHost(to, outputs.data() + i * each, each);
    arena_.at(sets[i]).kept = to;
  }
  result_places_.clear();
  reply_ = {};
  if (python_) reply_.outputs = AsWanted();
}

double CandidateSide::Collect(const std::vector<std::size_t>& sets) {
  const double handed = handing_ * static_cast<double>(sets.size()) + flushing_;
  double quieting = 0;
  if (ops_.cuda()) {
    // What waits on a stream for what the judge does at the answer begins by itself.
    const auto begin = Clock::now();
    WaitUntilQuiet();
    quieting = Since(begin);
  }
  // What a process asked of the kernel goes on after its answer, until it stands.
  const double late = (ops_.cuda() ? std::max(0.0, ready_seconds_ - kMoreHanding * handed - kMoreHandingOnce) : 0) +
                      std::max(0.0, conversation_.stopping() - (reads_ ? kMoreOwnStopping : kMoreStopping) * stopping_ -
                                        (reads_ ? kMoreOwnStoppingOnce : kMoreStoppingOnce)) +
                      std::max(0.0, quieting - kMoreQuieting * quieting_ - kMoreQuietingOnce);
  if (!python_ || reads_) return late;
  const Reply stored = conversation_.Store(sets);
  reply_.outputs = stored.outputs;
  return late +
         std::max(0.0, stored.wall - kMoreStoring * (storing_asked_ + storing_ * static_cast<double>(sets.size())));
}

double CandidateSide::AskForNothing() {
  MakeReady({});
  return Run({});
}

// What the judge does between two timed runs of a candidate's, and as long as that takes.
void CandidateSide::RestAsTimed(std::size_t calls, const std::function<void()>& between) {
  const auto end = Clock::now() + kRested;
  std::vector<std::size_t> sets(calls);
  std::iota(sets.begin(), sets.end(), 0);
  // (Where drawing takes longer, that it takes time is what it does to a process.)
  if (values_.RefillSeconds(calls) <= std::chrono::duration<double>(kRested).count()) values_.Refill(sets);
  Prepare(sets);
  for (std::size_t i = 0; i < calls && Clock::now() < end; ++i) between();
  std::this_thread::sleep_until(end);
}

void CandidateSide::LearnRested(const RunLengths& lengths, double each, const std::function<void()>& between) {
  const std::size_t fit = std::min(kMostPractised, ops_.free_bytes() / 16 / kPractisedBytes);
  const std::size_t calls = std::min(static_cast<std::size_t>(lengths.seconds / std::max(each, 1e-6)), fit);
  const bool longer = reads_ && calls > 2 * kFew;
  const auto practise = [&] {
    RestAsTimed(lengths.calls, between);
    MakeReady({});
    asked_ = Clock::now();
    conversation_.Practise(calls, like_, [this] { return WaitUntilQuiet(); });
  };
  std::vector<double> empty, stopping;
  if (longer) practise();  // takes its memory
  for (int i = 0; i < kRestedTimes; ++i) {
    RestAsTimed(lengths.calls, between);
    empty.push_back(AskForNothing());
    if (!longer) continue;
    practise();
    stopping.push_back(conversation_.stopping());
  }
  dearer_rested_ = std::max(Median(empty) - empty_before_, 0.0);
  rested_error_ = MedianError(empty);
  if (longer) stopping_ = std::max(stopping_, Median(stopping));
}

void CandidateSide::LearnAsking(const RunLengths& lengths, int times, const std::function<void()>& between) {
  like_ = lengths.most;
  // T(n) = asking + n calls: twice T(n) less T(2n).
  std::vector<double> empty, few, twice, stopping, quieting;
  const auto practise = [&](std::size_t count) {
    between();
    MakeReady({});
    asked_ = Clock::now();
    return conversation_.Practise(count, like_, [this] { return WaitUntilQuiet(); });
  };
  conversation_.HoldBetweenRuns(true);
  reads_ = CanRead();
  if (!reads_ && returned_ != nullptr) {
    conversation_.SetHearOfMemory([](std::vector<Piece>, const std::vector<std::uint64_t>&) {});
    returned_.reset();
  }
  if (ops_.cuda()) LearnQuick();
  practise(kFew);  // pages its code and memory in
  // Where it may be a large part of short runs, more often: what is not known of it widens the interval.
  constexpr double kMostError = 0.01;  // of a run
  constexpr int kMostRounds = 3;
  for (int round = 0; round < kMostRounds; ++round) {
    for (int i = 0; i < times; ++i) {
      between();
      empty.push_back(AskForNothing());
      few.push_back(practise(kFew));
      twice.push_back(practise(2 * kFew));
      stopping.push_back(conversation_.stopping());
      if (ops_.cuda()) {
        const auto begin = Clock::now();
        WaitUntilQuiet();
        quieting.push_back(Since(begin));
      }
    }
    asking_error_ = std::hypot(2 * MedianError(few), MedianError(twice), MedianError(empty));
    if (!ops_.cuda() || asking_error_ <= kMostError * lengths.seconds) break;
  }
  if (ops_.cuda()) quieting_ = Median(quieting);
  stopping_ = Median(stopping);
  empty_before_ = Median(empty);
  if (python_ && !reads_) LearnStoring(between);
  if (ops_.cuda()) LearnHanding();
  // Beside longer runs of native kernels it does not count.
  if (ops_.cuda() && (python_ || lengths.seconds < kShortRun)) {
    LearnRested(lengths, (Median(twice) - Median(few)) / kFew, between);
  }
  if (steps_ != nullptr) steps_->Learn();
  conversation_.HoldBetweenRuns(false);
  // What a run has beyond an empty one: no less than nothing, and no more than all of a short one. Not only where it is
  // beyond its error: it is always there, and what is left out makes every candidate look slower.
  double beyond = 2 * Median(few) - Median(twice) - empty_before_;
  if (!ops_.cuda()) {
    // A machine that is busy keeps some of these runs waiting, and what it adds would be taken off every run that comes
    // when it is not: the quicker ones have less of it, and asking is never twice what it is for nothing.
    constexpr double kQuicker = 0.25;
    const double quicker = 2 * Quantile(few, kQuicker) - Quantile(twice, kQuicker) - Quantile(empty, kQuicker);
    beyond = std::min({beyond, quicker, Quantile(empty, 0)});
  }
  asking_ = empty_before_ + std::clamp(beyond, 0.0, std::max(Median(few) - empty_before_, 0.0));
}

// What it takes to give so many sets their inputs and to flush the cache, while nothing of this candidate can be
// queued.
void CandidateSide::LearnHanding() {
  constexpr int kTimes = 3;
  constexpr std::size_t kLess = 4, kFew = 16;  // some of the sets say what each takes
  std::vector<std::size_t> sets(std::max(like_ / kLess, std::min(like_, kFew)));
  std::iota(sets.begin(), sets.end(), 0);
  const auto time = [this](const std::vector<std::size_t>& some) {
    std::vector<double> seconds;
    for (int i = 0; i < kTimes; ++i) {
      Prepare(some);
      MakeReady(some);
      seconds.push_back(ready_seconds_);
    }
    return Median(seconds);
  };
  flushing_ = time({});
  handing_ = std::max(time(sets) - flushing_, 0.0) / static_cast<double>(std::max<std::size_t>(sets.size(), 1));
}

void CandidateSide::LearnStoring(const std::function<void()>& between) {
  constexpr int kTimes = 7;
  constexpr std::size_t kMostPlaces = 512;
  // Bytes. Where memory is short, less: who cannot practise learns nothing, and an honest candidate would pay for it.
  const std::size_t most =
      std::min(std::size_t{ops_.cuda() ? 1024u : 32u} << 20, std::max(ops_.free_bytes() / 16, std::size_t{1} << 20));
  // Copies to the places of the first sets, of `most` bytes together.
  nlohmann::json all = nlohmann::json::array();
  std::size_t copied = 0, bytes = 0, sets = 0;
  for (; sets < like_ && (sets == 0 || (copied < most && all.size() < kMostPlaces)); ++sets) {
    const Slot& slot = arena_.at(sets);
    for (const Place& place : slot.out.places) {
      bytes += place.bytes;
      const std::size_t part = std::min(place.bytes, most - copied);
      if (part > 0) all.push_back({slot.out_region, place.offset, part});
      copied += part;
    }
  }
  if (all.empty()) return;
  // A quarter as many sets, or of few a quarter of each: what asking costs is in both.
  constexpr std::size_t kLess = 4, kUnit = 16;
  nlohmann::json part = all;
  if (sets >= kLess) {
    part.erase(part.begin() + static_cast<std::ptrdiff_t>(all.size() / sets * (sets / kLess)), part.end());
  } else {
    for (auto& place : part) {
      place[2] = std::max<std::size_t>(place[2].get<std::size_t>() / kLess / kUnit * kUnit, 1);
    }
  }
  std::size_t less = 0;
  for (const auto& place : part) less += place[2].get<std::size_t>();
  const auto store = [&](const nlohmann::json& places) {
    between();
    MakeReady({});
    conversation_.Practise(
        1, 0, [this] { return WaitUntilQuiet(); }, places);
    return conversation_.PractiseStoring(sets);
  };
  store(all);  // pages its code and memory in
  std::vector<double> whole, quarter;
  for (int i = 0; i < kTimes; ++i) {
    whole.push_back(store(all));
    quarter.push_back(store(part));
  }
  const double grown = std::max(Median(whole) - Median(quarter), 0.0);
  // For a byte: by the difference, within what one of the two alone says.
  const double whole_each = Median(whole) / static_cast<double>(copied);
  const double least = std::max(Median(whole) - 2 * empty_before_, 0.0) / static_cast<double>(copied);
  const double each = std::clamp(copied > less ? grown / static_cast<double>(copied - less) : 0, least, whole_each);
  storing_asked_ = std::max(Median(whole) - each * static_cast<double>(copied), 0.0);
  storing_ = each * static_cast<double>(bytes) / static_cast<double>(sets);
}

double CandidateSide::Asking(double empty, double implied, double run, double most_implied) const {
  const double most = std::min(kMoreAsking * asking_ + kMoreWaking, kMoreOfRun * run);
  const double by_empty =
      std::min(empty - empty_before_, std::max(most, std::min(dearer_rested_, most_implied - asking_)));
  return asking_ + (implied > 0 ? std::max(by_empty, std::min(implied - asking_, most)) : by_empty);
}

double CandidateSide::AskingError(const std::vector<double>& empty) const {
  const bool bound = Median(empty) - empty_before_ > dearer_rested_;
  return std::hypot(asking_error_, MedianError(empty), bound ? rested_error_ : 0);
}

}  // namespace grove::judge
