#include "worker/pipeline/combinations.h"

#include <catch2/catch.hpp>

namespace grove::worker {
namespace {

v1::EvaluationResult Result(v1::Verdict verdict, double speedup = 0) {
  v1::EvaluationResult result;
  result.set_verdict(verdict);
  result.set_reason("why");
  if (speedup > 0) {
    v1::BaselineTiming* timing = result.mutable_timing()->add_baselines();
    timing->set_speedup(speedup);
    timing->set_speedup_low(speedup * 0.9);
    timing->set_speedup_high(speedup * 1.1);
    timing->set_candidate_median_seconds(1 / speedup);
  }
  return result;
}

TEST_CASE("Of all combinations the fastest that is correct is chosen", "[combinations]") {
  const auto wrong = Result(v1::VERDICT_WRONG, 9), untimed = Result(v1::VERDICT_CORRECT);
  const auto slow = Result(v1::VERDICT_CORRECT, 0.5), fast = Result(v1::VERDICT_CORRECT, 2);
  CHECK(BestCombination({wrong, slow, fast, slow}) == 2);
  CHECK(BestCombination({wrong, untimed, slow}) == 2);
  CHECK(BestCombination({wrong, untimed, untimed}) == 1);
  CHECK(BestCombination({wrong, wrong}) == 0);
  CHECK(BestCombination({fast, fast}) == 0);
  CHECK(MayBeLucky({slow, fast}));
  CHECK_FALSE(MayBeLucky({fast, wrong, untimed}));
}

TEST_CASE("All combinations are reported with what became of them", "[combinations]") {
  const auto declared = tuning::FindDeclared("int a = 1;  // grove: try 1 2\nint b = x;  // grove: try x y");
  REQUIRE(declared.ok());
  const auto values = tuning::Combinations(*declared);
  CHECK(CombinationText(*declared, values[1]) == "a=1 b=y");
  v1::EvaluationResult report = Result(v1::VERDICT_CORRECT, 2);
  report.add_combinations();
  ReportCombinations(*declared, values,
                     {Result(v1::VERDICT_CRASHED), Result(v1::VERDICT_CORRECT, 2), Result(v1::VERDICT_CORRECT),
                      Result(v1::VERDICT_BUILD_FAILED)},
                     1, &report);
  REQUIRE(report.combinations_size() == 4);
  CHECK(report.combinations(0).verdict() == v1::VERDICT_CRASHED);
  CHECK(report.combinations(0).reason() == "why");
  CHECK_FALSE(report.combinations(0).chosen());
  CHECK(report.combinations(1).chosen());
  CHECK(report.combinations(1).speedup() == 2);
  CHECK(report.combinations(1).seconds() == 0.5);
  CHECK(report.combinations(1).parameters(1).name() == "b");
  CHECK(report.combinations(1).parameters(1).value() == "y");
  CHECK(report.combinations(2).seconds() == 0);
  // Where none is correct the source stands as it was written.
  ReportCombinations(*declared, values, {Result(v1::VERDICT_CRASHED), Result(v1::VERDICT_WRONG)}, 0, &report);
  REQUIRE(report.combinations_size() == 2);
  CHECK_FALSE(report.combinations(0).chosen());
}

}  // namespace
}  // namespace grove::worker
