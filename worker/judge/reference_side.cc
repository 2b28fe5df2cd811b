#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "worker/judge/clock.h"
#include "worker/judge/side.h"

namespace grove::judge {

void ReferenceSide::Prepare(const std::vector<std::size_t>& sets) {
  former_.clear();
  // Of a former call the results alone are given back within a run, or evicted; its arguments go here.
  if (forgets_within_ || !ops_.cuda()) {
    for (const auto& [set, call] : calls_) former_.push_back(call->Outputs());
  }
  calls_.clear();
  for (std::size_t set : sets) calls_[set] = reference_.Prepare(values_.leaves(set), mode_);
  ops_.Synchronize();
}

void ReferenceSide::EvictOutputs(const std::vector<std::size_t>&) {
  for (const std::vector<at::Tensor>& outputs : former_) {
    for (const at::Tensor& output : outputs) ops_.Evict(output.data_ptr(), output.nbytes());
  }
  if (!forgets_within_) former_.clear();
}

double ReferenceSide::Run(const std::vector<std::size_t>& sets) {
  if (!forgets_within_) former_.clear();
  std::vector<Call*> order;
  for (std::size_t set : sets) order.push_back(calls_.at(set).get());
  std::vector<at::Tensor> copies;
  const auto begin = Clock::now();
  former_.clear();
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

std::function<void()> Between(LoadedProblem& problem, DeviceOps& ops) {
  constexpr double kShort = 3e-3;  // seconds: some forty of them are made
  if (problem.reference_seconds > kShort) return [] {};
  const std::shared_ptr<Call> call = problem.reference->Prepare(problem.reference->Draw(SecretSeed()), Mode::kEager);
  return [&ops, call] {
    call->Run();
    ops.Synchronize();
  };
}

double HostShare(Reference& reference, DeviceOps& ops, const std::vector<Leaf>& inputs, double call_seconds) {
  constexpr double kEnough = 5e-3;  // seconds of calls in a row
  constexpr int kMostCalls = 256, kTimes = 3;
  constexpr double kLongest = 0.2;  // beyond that a run is one call, and four more of them cost too much
  if (!ops.cuda() || call_seconds > kLongest) return 0;
  const std::unique_ptr<Call> call = reference.Prepare(inputs, Mode::kEager);
  const int calls = static_cast<int>(
      std::clamp(std::ceil(kEnough / std::max(call_seconds, 1e-6)), 1.0, static_cast<double>(kMostCalls)));
  call->Run();
  std::vector<double> shares;
  for (int i = 0; i < kTimes; ++i) {
    ops.Synchronize();
    const auto begin = Clock::now();
    for (int k = 0; k < calls; ++k) call->Run();
    const double issued = Since(begin);
    ops.Synchronize();
    shares.push_back(issued / Since(begin));
  }
  std::sort(shares.begin(), shares.end());
  return shares[kTimes / 2];
}

}  // namespace grove::judge
