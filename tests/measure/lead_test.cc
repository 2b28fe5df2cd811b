#include "common/measure/lead.h"

#include <catch2/catch.hpp>
#include <random>
#include <vector>

namespace grove::measure {
namespace {

v1::EvaluationResult Timed(double speedup, double resolution = 0.01) {
  v1::EvaluationResult result;
  result.set_verdict(v1::VERDICT_CORRECT);
  v1::BaselineTiming* timing = result.mutable_timing()->add_baselines();
  timing->set_baseline(v1::BASELINE_EAGER);
  timing->set_speedup(speedup);
  timing->set_speedup_low(speedup * 0.99);
  timing->set_speedup_high(speedup * 1.01);
  timing->set_resolution(resolution);
  return result;
}

v1::EvaluationResult Ended(v1::Verdict verdict) {
  v1::EvaluationResult result;
  result.set_verdict(verdict);
  return result;
}

TEST_CASE("A kernel leads once it was measured twice, by the less favourable figure") {
  Lead lead;
  CHECK(lead.Leader() == -1);
  CHECK(lead.Wanted() == -1);
  lead.First(0, Timed(2.0));
  CHECK(lead.Wanted() == 0);
  CHECK(lead.Leader() == 0);  // nobody else, and said to be measured once
  CHECK_FALSE(lead.LeaderConfirmed());
  CHECK(lead.Again(0, Timed(1.5)) == Second::kLower);
  CHECK(lead.LeaderConfirmed());
  CHECK(lead.LeaderFigures().speedup == 1.5);
  CHECK(lead.Wanted() == -1);
  // Lucky at first: does not lead, for all its first figure.
  lead.First(1, Timed(1.9));
  CHECK(lead.Wanted() == 1);
  CHECK(lead.Leader() == 0);
  CHECK(lead.Again(1, Timed(1.45)) == Second::kLower);
  CHECK(lead.Leader() == 0);
  // Better the second time: the first figure counts.
  lead.First(2, Timed(1.8));
  CHECK(lead.Again(2, Timed(2.4)) == Second::kHigher);
  CHECK(lead.Leader() == 2);
  CHECK(lead.LeaderFigures().speedup == 1.8);
}

TEST_CASE("No lead is finer than the resolution, and who came first stays") {
  Lead lead;
  lead.First(0, Timed(2.0, 0.05));
  lead.Again(0, Timed(2.0, 0.05));
  lead.First(1, Timed(2.09, 0.05));
  CHECK(lead.Wanted() == -1);
  CHECK(lead.Leader() == 0);
  lead.First(2, Timed(2.11, 0.05));
  CHECK(lead.Wanted() == 2);
  lead.Again(2, Timed(2.08, 0.05));
  CHECK(lead.Leader() == 0);
}

TEST_CASE("A kernel that fails the second time is out, and one that cannot be measured again may not lead") {
  Lead lead;
  lead.First(0, Timed(3));
  lead.First(1, Timed(2));
  lead.First(2, Timed(1.5));
  CHECK(lead.Wanted() == 0);
  CHECK(lead.Again(0, Ended(v1::VERDICT_WRONG)) == Second::kFailed);
  CHECK(lead.Leader() == 1);
  CHECK(lead.Wanted() == 1);
  CHECK(lead.Again(1, Ended(v1::VERDICT_UNMEASURABLE)) == Second::kNone);
  CHECK(lead.Wanted() == 2);
  CHECK(lead.Leader() == 1);  // no kernel was measured twice
  CHECK(lead.Again(2, Timed(1.4)) == Second::kLower);
  CHECK(lead.Leader() == 2);
  CHECK(lead.LeaderConfirmed());
}

TEST_CASE("What is not correct or was not timed never counts") {
  Lead lead;
  lead.First(0, Ended(v1::VERDICT_WRONG));
  lead.First(1, Ended(v1::VERDICT_CORRECT));
  CHECK(lead.Leader() == -1);
  CHECK(lead.Wanted() == -1);
  CHECK(lead.Again(0, Timed(2)) == Second::kNone);
  CHECK(lead.Leader() == -1);
}

// Sixteen kernels of the same true speed, each measured with noise: the leader's figure is nearer to the truth than the
// best of single measurements, and a kernel that is truly faster leads all the same.
TEST_CASE("Measuring again takes the luck out of the lead") {
  std::mt19937_64 random(11);
  std::normal_distribution<double> noise(0, 0.03);
  double single = 0, twice = 0;
  int found = 0;
  constexpr int kSearches = 500;
  for (int search = 0; search < kSearches; ++search) {
    Lead lead;
    double luckiest = 0;
    const auto measure = [&](int kernel) { return Timed((kernel == 9 ? 1.3 : 1.0) * std::exp(noise(random)), 0.02); };
    for (int kernel = 0; kernel < 16; ++kernel) {
      const v1::EvaluationResult result = measure(kernel);
      if (kernel != 9) luckiest = std::max(luckiest, result.timing().baselines(0).speedup());
      lead.First(kernel, result);
      for (int wanted; (wanted = lead.Wanted()) >= 0;) lead.Again(wanted, measure(wanted));
      if (kernel == 8) twice += lead.LeaderFigures().speedup;
    }
    single += luckiest;
    found += lead.Leader() == 9 ? 1 : 0;
    REQUIRE(lead.LeaderConfirmed());
  }
  CHECK(found == kSearches);
  CHECK(single / kSearches > 1.045);  // the luckiest of fifteen
  CHECK(twice / kSearches < 1.02);
}

}  // namespace
}  // namespace grove::measure
