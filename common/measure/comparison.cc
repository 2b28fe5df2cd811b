#include "common/measure/comparison.h"

#include <algorithm>
#include <cmath>

#include "common/measure/replicas.h"

namespace grove::measure {

v1::Comparison Compare(double low, double high, double resolution) {
  if (!std::isfinite(low) || !std::isfinite(high) || !(low > 0) || low > high) return v1::COMPARISON_UNSPECIFIED;
  const double most = 1 + std::max(resolution, 0.0);
  const double least = 1 / most;
  if (low > most) return v1::COMPARISON_FASTER;
  if (high < least) return v1::COMPARISON_SLOWER;
  return low >= least && high <= most ? v1::COMPARISON_SAME : v1::COMPARISON_UNCLEAR;
}

double ResolutionOf(const v1::DeviceInfo& device, double seconds, double run_seconds, int replicas) {
  const v1::Calibration& calibration = device.calibration();
  const bool single = replicas < calibration.replicas() && calibration.single_resolution() > 0;
  double resolution = single ? calibration.single_resolution() : calibration.resolution();
  if (std::isfinite(resolution) && resolution > 0) {
    for (const v1::CalibrationKernel& kernel : calibration.kernels()) {
      const double its = single ? kernel.single_resolution() : kernel.resolution();
      if (!(its > 0) || !(kernel.seconds() > 0) || !(seconds >= kAboutAsLong * kernel.seconds()) ||
          !(run_seconds >= kAboutAsLong * kernel.run_seconds())) {
        continue;
      }
      resolution = std::min(resolution, its);
    }
    return resolution;
  }
  return device.kind() == v1::DEVICE_KIND_CUDA ? kDefaultResolutionCuda : kDefaultResolutionCpu;
}

double RunSeconds(const v1::TimingReport& timing, const v1::BaselineTiming& baseline) {
  return timing.calls_per_sample() * std::min(baseline.candidate_median_seconds(), baseline.reference_median_seconds());
}

void FillComparisons(v1::EvaluationResult* result) {
  if (!result->has_timing()) return;
  for (v1::BaselineTiming& timing : *result->mutable_timing()->mutable_baselines()) {
    const double resolution = ResolutionOf(
        result->device(), std::min(timing.reference_median_seconds(), timing.candidate_median_seconds()),
        RunSeconds(result->timing(), timing), timing.baseline() == v1::BASELINE_RIVAL ? ReplicasOf(timing) : 1);
    timing.set_comparison(Compare(timing.speedup_low(), timing.speedup_high(), resolution));
    timing.set_resolution(timing.comparison() == v1::COMPARISON_UNSPECIFIED ? 0 : resolution);
  }
}

const v1::BaselineTiming* Ranking(const v1::EvaluationResult& result) {
  if (result.verdict() != v1::VERDICT_CORRECT || result.timing().baselines().empty()) return nullptr;
  const v1::BaselineTiming& first = result.timing().baselines(0);
  return first.speedup() > 0 && std::isfinite(first.speedup()) ? &first : nullptr;
}

const v1::BaselineTiming* AgainstRival(const v1::EvaluationResult& result) {
  for (const v1::BaselineTiming& timing : result.timing().baselines()) {
    if (timing.baseline() == v1::BASELINE_RIVAL && timing.speedup() > 0) return &timing;
  }
  return nullptr;
}

}  // namespace grove::measure
