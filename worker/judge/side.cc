#include "worker/judge/side.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "worker/judge/statistics.h"

namespace grove::judge {
namespace {

using Clock = std::chrono::steady_clock;

double Since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Storing by a candidate may take this many times what it took a process that computes nothing (other caches, another
// state of the allocator), and Python asks torch for one copy in so many seconds.
constexpr double kMoreStoring = 1.5, kCopyCuda = 15e-6, kCopyCpu = 6e-6;

}  // namespace

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
}

// ------------------------------------------------------------------------------------------------------- the reference
void ReferenceSide::Prepare(const std::vector<std::size_t>& sets) {
  calls_.clear();
  for (std::size_t set : sets) calls_[set] = reference_.Prepare(values_.leaves(set), mode_);
  ops_.Synchronize();
}

double ReferenceSide::Run(const std::vector<std::size_t>& sets) {
  std::vector<Call*> order;
  for (std::size_t set : sets) order.push_back(calls_.at(set).get());
  std::vector<at::Tensor> copies;
  const auto begin = Clock::now();
  if (order.empty()) {
    ops_.EmptyRun();
  } else {
    for (Call* call : order) {
      call->Run();
      if (aliases_ || copies_) {
        for (const at::Tensor& output : call->Outputs()) copies.push_back(aliases_ ? output.clone() : output);
      }
    }
    ops_.Synchronize();
  }
  const double seconds = Since(begin);
  if (!known_ && !order.empty()) {
    // Outputs() gives contiguous tensors: twice the same ones, or each time new copies.
    const std::vector<at::Tensor> once = order[0]->Outputs(), again = order[0]->Outputs();
    for (std::size_t i = 0; i < once.size(); ++i) {
      copies_ = copies_ || (once[i].numel() > 0 && once[i].data_ptr() != again[i].data_ptr());
    }
    aliases_ = Aliases(once);
    known_ = true;
  }
  return seconds;
}

std::vector<at::Tensor> ReferenceSide::Outputs(std::size_t set) {
  auto call = calls_.find(set);
  return call == calls_.end() ? std::vector<at::Tensor>() : call->second->Outputs();
}

bool ReferenceSide::Aliases(const std::vector<at::Tensor>& outputs) const {
  for (const at::Tensor& output : outputs) {
    const char* at = static_cast<const char*>(output.data_ptr());
    if (output.numel() > 0 && at >= values_.data() && at < values_.data() + values_.bytes()) return true;
  }
  return false;
}

// ------------------------------------------------------------------------------------------------------- the candidate
void CandidateSide::Prepare(const std::vector<std::size_t>& sets) {
  for (std::size_t set : sets) {
    Slot& slot = arena_.at(set);
    slot.leaves = values_.leaves(set);
    slot.spoiled = false;
    // Guards come along: the judge's own copy has them at the same places.
    if (!slot.in.places.empty()) {
      const std::size_t first = slot.in.places[0].offset;
      ops_.Copy(slot.inputs->data() + first, values_.data() + first, slot.in.bytes - first);
    }
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

double CandidateSide::Run(const std::vector<std::size_t>& sets) {
  reply_ = conversation_.RunTimed(
      sets, sets.empty() ? like_ : 0,
      // The clock stops when work of our own has gone through the device, behind whatever it was still doing.
      [this] { ops_.EmptyRun(); },
      // The last call's inputs first: what is late is late from the end.
      [this, &sets] {
        for (auto set = sets.rbegin(); set != sets.rend(); ++set) arena_.Spoil(&arena_.at(*set));
        ops_.Synchronize();
      });
  return reply_.wall;
}

double CandidateSide::Collect(const std::vector<std::size_t>& sets) {
  if (!python_) return 0;
  const Reply stored = conversation_.Store(sets);
  reply_.outputs = stored.outputs;
  const double outputs = static_cast<double>(sets.empty() ? 0 : arena_.at(sets[0]).out.places.size());
  const double each = kMoreStoring * storing_ + (ops_.cuda() ? kCopyCuda : kCopyCpu) * outputs;
  return std::max(0.0, stored.wall - 2 * empty_before_ - each * static_cast<double>(sets.size()));
}

double CandidateSide::AskForNothing() {
  std::this_thread::sleep_for(kRest);
  Cool({});
  return Run({});
}

void CandidateSide::LearnAsking(std::size_t calls) {
  like_ = calls;
  constexpr int kTimes = 12;
  constexpr std::size_t kFew = 4;
  // T(n) = asking + n calls: twice T(n) less T(2n).
  std::vector<double> empty, few, twice;
  const auto practise = [this](std::size_t count) {
    std::this_thread::sleep_for(kRest);
    Cool({});
    return conversation_.Practise(count, like_, [this] { ops_.EmptyRun(); });
  };
  conversation_.HoldBetweenRuns(true);
  practise(kFew);  // pages its code and memory in
  for (int i = 0; i < kTimes; ++i) {
    empty.push_back(AskForNothing());
    few.push_back(practise(kFew));
    twice.push_back(practise(2 * kFew));
  }
  empty_before_ = Median(empty);
  if (python_) LearnStoring();
  conversation_.HoldBetweenRuns(false);
  asking_ = std::max(empty_before_, 2 * Median(few) - Median(twice));
}

void CandidateSide::LearnStoring() {
  constexpr int kTimes = 7;
  const std::size_t most = std::size_t{ops_.cuda() ? 128u : 32u} << 20;  // bytes, of up to three sets
  const std::size_t sets = std::min<std::size_t>(3, like_);
  nlohmann::json results = nlohmann::json::array(), places = nlohmann::json::array();
  std::size_t wanted = 0, bytes = 0;
  for (std::size_t set = 0; set < sets; ++set) {
    const Slot& slot = arena_.at(set);
    for (const Place& place : slot.out.places) {
      wanted += place.bytes;
      const std::size_t part = std::min(place.bytes, most - bytes);
      if (part == 0) continue;
      bytes += part;
      results.push_back(part);
      places.push_back({slot.out_region, place.offset, part});
    }
  }
  if (bytes == 0) return;
  std::vector<double> seconds;
  for (int i = 0; i <= kTimes; ++i) {
    std::this_thread::sleep_for(kRest);
    Cool({});
    conversation_.Practise(
        1, 0, [this] { ops_.EmptyRun(); }, results);
    const double took = conversation_.PractiseStoring(places);
    if (i > 0) seconds.push_back(took);  // the first one pages its code and memory in
  }
  const double whole = static_cast<double>(wanted) / static_cast<double>(bytes);
  storing_ = std::max(0.0, Median(seconds) - empty_before_) * whole / static_cast<double>(sets);
}

double CandidateSide::Asking(double empty) const {
  return std::min(empty + asking_ - empty_before_, 1.25 * asking_ + 30e-6);
}

}  // namespace grove::judge
