#include "common/measure/comparison.h"

#include <algorithm>
#include <cmath>

namespace grove::measure {

v1::Comparison Compare(double low, double high, double resolution) {
  if (!std::isfinite(low) || !std::isfinite(high) || !(low > 0) || low > high) return v1::COMPARISON_UNSPECIFIED;
  const double most = 1 + std::max(resolution, 0.0);
  const double least = 1 / most;
  if (low > most) return v1::COMPARISON_FASTER;
  if (high < least) return v1::COMPARISON_SLOWER;
  return low >= least && high <= most ? v1::COMPARISON_SAME : v1::COMPARISON_UNCLEAR;
}

double ResolutionOf(const v1::DeviceInfo& device, double seconds) {
  const v1::Calibration& calibration = device.calibration();
  const double calibrated = calibration.resolution(), of_short = calibration.short_resolution();
  if (std::isfinite(calibrated) && calibrated > 0) {
    const bool is_short = seconds < calibration.short_seconds() && std::isfinite(of_short);
    return is_short ? std::max(calibrated, of_short) : calibrated;
  }
  return device.kind() == v1::DEVICE_KIND_CUDA ? kDefaultResolutionCuda : kDefaultResolutionCpu;
}

void FillComparisons(v1::EvaluationResult* result) {
  if (!result->has_timing()) return;
  for (v1::BaselineTiming& timing : *result->mutable_timing()->mutable_baselines()) {
    const double resolution =
        ResolutionOf(result->device(), std::min(timing.reference_median_seconds(), timing.candidate_median_seconds()));
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
