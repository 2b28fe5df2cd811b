#include "worker/judge/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

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

namespace {

// The 97.5 % point of Student's distribution: 1.96 for many degrees of freedom, and the expansion of Cornish and Fisher
// (Abramowitz and Stegun 26.7.5, exact to 1 % from 3 degrees on) for few; by the table for 1 and 2.
double StudentQuantile(double degrees) {
  if (degrees < 1.5) return 12.706;
  if (degrees < 2.5) return 4.303;
  constexpr double z = 1.959964;
  const double z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
  const double g1 = (z3 + z) / 4, g2 = (5 * z5 + 16 * z3 + 3 * z) / 96,
               g3 = (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / 384;
  return z + g1 / degrees + g2 / (degrees * degrees) + g3 / (degrees * degrees * degrees);
}

}  // namespace

double MedianError(const std::vector<double>& values) {
  if (values.size() < 2) return std::numeric_limits<double>::infinity();
  const double spread = (Quantile(values, 0.75) - Quantile(values, 0.25)) / 1.35;
  return 1.25 * spread / std::sqrt(static_cast<double>(values.size()));
}

RatioEstimate EstimateRatio(const std::vector<double>& reference, const std::vector<double>& candidate,
                            int block_length, std::uint64_t seed) {
  constexpr int kResamples = 1000;  // the 2.5 % point then rests on 25 resamples: about 0.2 of its own width
  RatioEstimate estimate;
  const std::size_t n = std::min(reference.size(), candidate.size());
  if (n == 0) return estimate;
  std::vector<double> logs(n);
  for (std::size_t i = 0; i < n; ++i) logs[i] = std::log(reference[i] / candidate[i]);
  estimate.speedup = std::exp(Median(logs));

  // Three blocks at least, or there is no telling how blocks differ.
  const std::size_t length =
      std::clamp<std::size_t>(static_cast<std::size_t>(std::max(block_length, 1)), 1, std::max<std::size_t>(n / 3, 1));
  const std::size_t blocks = (n + length - 1) / length;
  Random random(seed);
  std::vector<double> medians, sample;
  medians.reserve(kResamples);
  for (int round = 0; round < kResamples; ++round) {
    sample.clear();
    while (sample.size() < n) {
      // Blocks begin anywhere and go on from the end to the start, so that every pair is drawn equally often.
      const std::size_t begin = static_cast<std::size_t>(random.Below(n));
      for (std::size_t i = 0; i < length && sample.size() < n; ++i) sample.push_back(logs[(begin + i) % n]);
    }
    medians.push_back(Median(sample));
  }
  // Resamples of few blocks differ by less than the truth does from them: widened as for a mean of so many.
  const double few = static_cast<double>(std::max<std::size_t>(blocks, 2));
  const double widen = StudentQuantile(few - 1) / StudentQuantile(1e9) * std::sqrt(few / (few - 1));
  const double middle = Median(logs);
  const double below = std::max(middle - Quantile(medians, 0.025), 0.0);
  const double above = std::max(Quantile(medians, 0.975) - middle, 0.0);
  estimate.low = std::exp(middle - widen * below);
  estimate.high = std::exp(middle + widen * above);
  return estimate;
}

}  // namespace grove::judge
