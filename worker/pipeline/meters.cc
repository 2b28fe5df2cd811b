#include "worker/pipeline/meters.h"

#include <utility>

namespace grove::worker {
namespace {

constexpr size_t kMaxStageSamples = 10000;  // between two Take calls

}  // namespace

void Meters::Verdict(v1::Verdict verdict) {
  std::lock_guard<std::mutex> lock(mutex_);
  ++verdicts_[v1::Verdict_Name(verdict)];
}

void Meters::InfrastructureFailure() {
  std::lock_guard<std::mutex> lock(mutex_);
  ++stats_.infrastructure_failures_total;
}

void Meters::Build(bool cached) {
  std::lock_guard<std::mutex> lock(mutex_);
  ++stats_.builds_total;
  ++(cached ? stats_.build_cache_hits_total : stats_.build_cache_misses_total);
}

void Meters::SharedTiming() {
  std::lock_guard<std::mutex> lock(mutex_);
  ++stats_.shared_timings_total;
}

void Meters::Stage(const std::string& stage, double seconds) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<double>& samples = stage_seconds_[stage];
  if (samples.size() < kMaxStageSamples) samples.push_back(seconds);
}

void Meters::ShowSlot(const std::string& state) {
  std::lock_guard<std::mutex> lock(mutex_);
  stats_.slot_state = state;
}

void Meters::EnterSlot(const std::string& state) {
  std::lock_guard<std::mutex> lock(mutex_);
  slot_clock_.Enter(state, SteadyNow());
}

void Meters::SetIdle(bool idle) {
  std::lock_guard<std::mutex> lock(mutex_);
  idle_ = idle;
  ShowWhyIdle();
}

void Meters::SetWork(bool any) {
  std::lock_guard<std::mutex> lock(mutex_);
  work_ = any;
  ShowWhyIdle();
}

void Meters::ShowWhyIdle() {
  if (!idle_ || slot_clock_.state() == "quarantined") return;
  const char* state = work_ ? "awaiting_build" : "no_work";
  if (slot_clock_.state() != state) slot_clock_.Enter(state, SteadyNow());
}

void Meters::SetLayers(std::vector<std::pair<std::string, bool>> layers) {
  std::lock_guard<std::mutex> lock(mutex_);
  stats_.sandbox_layers = std::move(layers);
}

PipelineStats Meters::Take() {
  std::lock_guard<std::mutex> lock(mutex_);
  PipelineStats stats = stats_;
  for (const auto& [verdict, count] : verdicts_) stats.verdicts_total.emplace_back(verdict, count);
  for (auto& [stage, seconds] : stage_seconds_) stats.stage_seconds.emplace_back(stage, std::move(seconds));
  stage_seconds_.clear();
  for (const auto& [state, seconds] : slot_clock_.Seconds(SteadyNow())) {
    stats.slot_seconds.emplace_back(state, seconds);
    if (state == "checking" || state == "timing") stats.busy_seconds_total += seconds;
  }
  return stats;
}

}  // namespace grove::worker
