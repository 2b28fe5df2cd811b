#include "common/measure/comparison.h"

#include <algorithm>
#include <cmath>

#include "common/measure/replicas.h"

namespace grove::measure {

v1::Comparison Compare(double ratio, double low, double high, double resolution) {
  if (!std::isfinite(high) || !(low > 0) || !(low <= ratio) || !(ratio <= high)) return v1::COMPARISON_UNSPECIFIED;
  const double most = 1 + std::max(resolution, 0.0);
  if (ratio > most) return low > 1 ? v1::COMPARISON_FASTER : v1::COMPARISON_UNCLEAR;
  if (ratio < 1 / most) return high < 1 ? v1::COMPARISON_SLOWER : v1::COMPARISON_UNCLEAR;
  // What is within by reckoning stays so where rounding puts it a bit outside.
  const double twice = most * most * (1 + 1e-12);
  return low >= 1 / twice && high <= twice ? v1::COMPARISON_SAME : v1::COMPARISON_UNCLEAR;
}

bool Widen(double ratio, double resolution, double* low, double* high) {
  const double least = ratio / (1 + resolution), most = ratio * (1 + resolution);
  if (!(least > 0) || (*low <= least && *high >= most)) return false;
  *low = std::min(*low, least);
  *high = std::max(*high, most);
  return true;
}

double ResolutionOf(const v1::DeviceInfo& device, double seconds, double run_seconds) {
  const v1::Calibration& calibration = device.calibration();
  double resolution = calibration.resolution();
  if (std::isfinite(resolution) && resolution > 0) {
    for (const v1::CalibrationKernel& kernel : calibration.kernels()) {
      const double its = kernel.resolution();
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

void FillComparisons(v1::EvaluationResult* result, bool script) {
  if (!result->has_timing()) return;
  const bool cuda = result->device().kind() == v1::DEVICE_KIND_CUDA;
  for (v1::BaselineTiming& timing : *result->mutable_timing()->mutable_baselines()) {
    double resolution =
        ResolutionOf(result->device(), std::min(timing.reference_median_seconds(), timing.candidate_median_seconds()),
                     RunSeconds(result->timing(), timing));
    if (script && cuda && ReplicasOf(timing) == 1) resolution = std::max(resolution, kScriptResolutionCuda);
    timing.set_comparison(Compare(timing.speedup(), timing.speedup_low(), timing.speedup_high(), resolution));
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
