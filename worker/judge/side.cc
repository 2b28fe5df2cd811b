#include "worker/judge/side.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>

#include "worker/judge/statistics.h"

namespace grove::judge {
namespace {

using Clock = std::chrono::steady_clock;

double Since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

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

double CandidateSide::CopySeconds(std::size_t set) {
  const Slot& slot = arena_.at(set);
  if (slot.out.places.empty()) return 0;
  const std::size_t first = slot.out.places[0].offset, bytes = slot.out.bytes - first;
  if (scratch_ == nullptr) {
    scratch_ = ops_.Allocate(bytes);
    ops_.Copy(scratch_->data(), slot.outputs->data() + first, bytes);
  }
  ops_.Synchronize();
  const auto begin = Clock::now();
  ops_.Copy(scratch_->data(), slot.outputs->data() + first, bytes);
  ops_.Synchronize();
  return Since(begin);
}

double CandidateSide::Collect(const std::vector<std::size_t>& sets) {
  if (!python_) return 0;
  const Reply stored = conversation_.Store(sets);
  reply_.outputs = stored.outputs;
  // What such copies take is seen on copies of our own, of a few of these very outputs.
  constexpr std::size_t kLooked = 3;
  constexpr double kMore = 1.5;                    // between two caches and two allocators
  const double call = ops_.cuda() ? 15e-6 : 6e-6;  // for Python to ask torch for one copy
  std::vector<double> copies;
  for (std::size_t i = 0; i < std::min(kLooked, sets.size()); ++i) copies.push_back(CopySeconds(sets[i]));
  const double outputs = static_cast<double>(sets.empty() ? 0 : arena_.at(sets[0]).out.places.size());
  const double each = kMore * (copies.empty() ? 0 : Median(copies)) + call * outputs;
  return std::max(0.0, stored.wall - 2 * asking_ - each * static_cast<double>(sets.size()));
}

void CandidateSide::LearnAsking(std::size_t calls) {
  like_ = calls;
  constexpr int kTimes = 15;
  std::vector<double> seconds;
  conversation_.HoldBetweenRuns(true);
  for (int i = 0; i < kTimes; ++i) seconds.push_back(Run({}));
  conversation_.HoldBetweenRuns(false);
  asking_ = Median(seconds);
}

}  // namespace grove::judge
