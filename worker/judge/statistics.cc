#include "worker/judge/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "worker/judge/random.h"

namespace grove::judge {

double Quantile(std::vector<double> values, double q) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const double position = q * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(position);
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(low);
  std::nth_element(values.begin(), at, values.end());
  const double first = *at;
  if (low + 1 >= values.size()) return first;
  const double second = *std::min_element(at + 1, values.end());
  return first + (position - static_cast<double>(low)) * (second - first);
}

double Median(std::vector<double> values) { return Quantile(std::move(values), 0.5); }

RatioEstimate EstimateRatio(const std::vector<double>& reference, const std::vector<double>& candidate,
                            int block_length, std::uint64_t seed) {
  constexpr int kResamples = 1000;  // the 2.5 % point then rests on 25 resamples: about 0.2 of its own width
  RatioEstimate estimate;
  const std::size_t n = std::min(reference.size(), candidate.size());
  if (n == 0) return estimate;
  std::vector<double> logs(n);
  for (std::size_t i = 0; i < n; ++i) logs[i] = std::log(reference[i] / candidate[i]);
  estimate.speedup = std::exp(Median(logs));

  const std::size_t length = std::clamp<std::size_t>(static_cast<std::size_t>(std::max(block_length, 1)), 1, n);
  const std::size_t blocks = (n + length - 1) / length;
  Random random(seed);
  std::vector<double> medians, sample;
  medians.reserve(kResamples);
  for (int round = 0; round < kResamples; ++round) {
    sample.clear();
    for (std::size_t b = 0; b < blocks; ++b) {
      const std::size_t begin = static_cast<std::size_t>(random.Below(blocks)) * length;
      for (std::size_t i = begin; i < std::min(begin + length, n); ++i) sample.push_back(logs[i]);
    }
    medians.push_back(Median(sample));
  }
  estimate.low = std::min(std::exp(Quantile(medians, 0.025)), estimate.speedup);
  estimate.high = std::max(std::exp(Quantile(medians, 0.975)), estimate.speedup);
  return estimate;
}

}  // namespace grove::judge
