#include "worker/judge/statistics.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "worker/judge/random.h"

namespace grove::judge {

TEST_CASE("Secret numbers do not repeat, and are even", "[statistics]") {
  Random one = Random::Secret(), two = Random::Secret();
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const double value = one.Uniform();
    CHECK(value != two.Uniform());
    sum += value;
  }
  CHECK(std::abs(sum / 10000 - 0.5) < 0.03);  // ten standard deviations
}

TEST_CASE("Quantiles agree with a sorted list", "[statistics]") {
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> values(1 + random.Below(40));
    for (double& value : values) value = random.Uniform();
    std::vector<double> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    const double q = random.Uniform(), position = q * static_cast<double>(sorted.size() - 1);
    const auto low = static_cast<std::size_t>(position);
    const double next = sorted[std::min(low + 1, sorted.size() - 1)];
    const double slow = sorted[low] + (position - static_cast<double>(low)) * (next - sorted[low]);
    CHECK(Quantile(values, q) == Approx(slow));
  }
  CHECK(std::isnan(Median({})));
  CHECK(Median({3, 1, 2}) == 2);
  CHECK(Median({4, 1, 2, 3}) == 2.5);
}

TEST_CASE("A ratio is the same whichever way it is taken, and its interval holds it", "[statistics]") {
  Random random(2);
  std::vector<double> a, b;
  for (int i = 0; i < 200; ++i) {
    a.push_back(2.0 + 0.1 * random.Uniform());
    b.push_back(1.0 + 0.1 * random.Uniform());
  }
  const RatioEstimate forward = EstimateRatio(a, b, 4, 1), backward = EstimateRatio(b, a, 4, 1);
  CHECK(forward.speedup == Approx(1 / backward.speedup));
  CHECK(forward.low <= forward.speedup);
  CHECK(forward.high >= forward.speedup);
  CHECK(forward.speedup == Approx(1.95).epsilon(0.02));
  const RatioEstimate again = EstimateRatio(a, b, 4, 1);
  CHECK(again.low == forward.low);
}

TEST_CASE("The 95 percent interval holds the truth about 95 times in 100", "[statistics]") {
  Random random(3);
  int held = 0;
  constexpr int kRounds = 200;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> a, b;
    for (int i = 0; i < 60; ++i) {
      a.push_back(std::exp(0.2 * (random.Uniform() - 0.5)));
      b.push_back(std::exp(0.2 * (random.Uniform() - 0.5)));
    }
    const RatioEstimate estimate = EstimateRatio(a, b, 1, static_cast<std::uint64_t>(round));
    held += estimate.low <= 1 && 1 <= estimate.high ? 1 : 0;
  }
  CAPTURE(held);
  CHECK(held >= kRounds * 88 / 100);
  CHECK(held < kRounds);
}

TEST_CASE("Blocks widen the interval of samples that hang together", "[statistics]") {
  Random random(4);
  std::vector<double> a, b;
  for (int block = 0; block < 20; ++block) {
    const double mood = std::exp(0.3 * (random.Uniform() - 0.5));
    for (int i = 0; i < 8; ++i) {
      a.push_back(mood);
      b.push_back(1.0 + 0.001 * random.Uniform());
    }
  }
  const RatioEstimate whole = EstimateRatio(a, b, 8, 1), single = EstimateRatio(a, b, 1, 1);
  CHECK(whole.high - whole.low > single.high - single.low);
}

TEST_CASE("Random numbers stay below their bound and reach all of it", "[statistics]") {
  Random random(5);
  std::vector<int> seen(7);
  for (int i = 0; i < 7000; ++i) ++seen[random.Below(7)];
  for (int count : seen) CHECK(count > 800);
  CHECK(random.Below(0) == 0);
  CHECK(random.Below(1) == 0);
}

}  // namespace grove::judge
