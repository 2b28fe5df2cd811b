// Statistics of paired timings. Pure and seeded: the same samples give the same interval. docs/timing.md derives it.
#pragma once

#include <cstdint>
#include <vector>

namespace grove::judge {

double Median(std::vector<double> values);              // NaN of nothing
double Quantile(std::vector<double> values, double q);  // linear between neighbours; NaN of nothing

// Standard error of the median: 1.25 standard deviations over root n, from half the distance between the quartiles;
// infinite for fewer than two.
double MedianError(const std::vector<double>& values);

inline constexpr int kBlock = 2;  // pairs that share the machine's mood, in measurements

struct RatioEstimate {
  double speedup = 0, low = 0, high = 0;
};

// exp(median(ln(reference / candidate))) with a 95 % bootstrap interval over blocks of consecutive pairs. Pairs near
// one another share the machine's mood, so whole blocks are drawn: otherwise the interval is too narrow. So it would be
// with few blocks, too, and it is widened by Student's factor for them. By simulation (tests/judge/coverage_test.cc) it
// holds the truth in 93 to 96 % of measurements of 10 to 100 pairs in blocks of kBlock, and in 87 to 89 % where
// neighbours are correlated by a half.
RatioEstimate EstimateRatio(const std::vector<double>& reference, const std::vector<double>& candidate,
                            int block_length, std::uint64_t seed);

}  // namespace grove::judge
