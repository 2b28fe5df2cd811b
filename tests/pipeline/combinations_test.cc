#include "worker/pipeline/combinations.h"

#include <catch2/catch.hpp>

#include "absl/strings/match.h"

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

// What `choice` comes to when a second measurement of combination i says again[i].
size_t Decide(Choice choice, const std::vector<v1::EvaluationResult>& again, int* asked = nullptr) {
  while (const std::optional<size_t> wanted = choice.Wanted()) {
    if (asked != nullptr) ++*asked;
    REQUIRE(*wanted < again.size());
    choice.Again(*wanted, again[*wanted]);
  }
  return choice.Chosen();
}

const auto kWrong = Result(v1::VERDICT_WRONG, 9), kUntimed = Result(v1::VERDICT_CORRECT),
           kNoBuild = Result(v1::VERDICT_BUILD_FAILED), kCheated = Result(v1::VERDICT_CHEATED),
           kNone = Result(v1::VERDICT_UNMEASURABLE);
v1::EvaluationResult Fast(double speedup) { return Result(v1::VERDICT_CORRECT, speedup); }

TEST_CASE("Of all combinations the fastest that is correct is chosen, when it is so twice", "[combinations]") {
  const auto alike = [](const std::vector<v1::EvaluationResult>& results) {
    return Decide({results, 4, false}, results);
  };
  CHECK(alike({kWrong, Fast(0.5), Fast(2), Fast(0.5)}) == 2);
  CHECK(alike({kWrong, kUntimed, Fast(0.5)}) == 2);
  CHECK(alike({kWrong, kUntimed, kUntimed}) == 1);
  CHECK(alike({kWrong, kWrong}) == 0);
  CHECK(alike({Fast(2), Fast(2)}) == 0);
  // Lucky the first time: the next one is, unless it was lucky too.
  CHECK(Decide({{Fast(1), Fast(1.5), Fast(1.2)}, 3, false}, {Fast(1), Fast(1.0), Fast(1.2)}) == 2);
  CHECK(Decide({{Fast(1), Fast(1.5), Fast(1.2)}, 3, false}, {Fast(1), Fast(1.1), Fast(1.05)}) == 1);
  // Faster the second time is no faster.
  CHECK(Decide({{Fast(1.4), Fast(1.5)}, 3, false}, {Fast(3), Fast(1.6)}) == 1);
  // Right by luck, or fast by luck where the others could not be measured.
  CHECK(Decide({{kNone, Fast(9), kNone}, 3, false}, {kNone, kWrong, kNone}) == 0);
  CHECK(Decide({{Fast(1), Fast(1.5)}, 3, false}, {Fast(1), kWrong}) == 0);
  CHECK(Decide({{kWrong, Fast(1.5), kWrong}, 3, false}, {kWrong, kWrong, kWrong}) == 0);
  CHECK(Decide({{kWrong, kUntimed, kUntimed}, 3, false}, {kWrong, kWrong, kUntimed}) == 2);
  // What cannot be measured again does not lead, while another can.
  CHECK(Decide({{Fast(1), Fast(1.5)}, 3, false}, {Fast(1), kNone}) == 0);
  CHECK(Decide({{Fast(1), Fast(1.5)}, 3, false}, {kNone, kNone}) == 1);
  // It is asked for twice: noise may pass.
  Choice noisy({Fast(1), Fast(1.5)}, 2, false);
  noisy.Again(1, kNone);
  REQUIRE(noisy.Wanted() == 1u);
  noisy.Again(1, Fast(1.4));
  CHECK_FALSE(noisy.Wanted().has_value());
  CHECK(noisy.Chosen() == 1);
}

TEST_CASE("Where there is nothing to choose from, nothing is measured twice but for a profile", "[combinations]") {
  int asked = 0;
  CHECK(Decide({{kNoBuild, Fast(2), kNoBuild}, 1, false}, {}, &asked) == 1);
  CHECK(asked == 0);
  v1::EvaluationResult profiled = Fast(3);
  profiled.mutable_profile()->set_unavailable("no counters");
  Choice choice({kNoBuild, Fast(2)}, 1, true);
  REQUIRE(choice.Wanted() == 1u);
  choice.Again(1, profiled);
  CHECK_FALSE(choice.Wanted().has_value());
  const auto declared = tuning::FindDeclared("int a = 1;  // grove: try 1 2");
  const v1::EvaluationResult result = choice.Result(*declared, tuning::Combinations(*declared));
  CHECK(result.profile().unavailable() == "no counters");
  CHECK(result.timing().baselines(0).speedup() == 2);
}

TEST_CASE("One combination that cheats decides for all", "[combinations]") {
  int asked = 0;
  CHECK(Decide({{Fast(1), kCheated, Fast(3)}, 3, false}, {}, &asked) == 1);
  CHECK(asked == 0);
  CHECK(Decide({{Fast(1), Fast(3)}, 3, false}, {Fast(1), kCheated}) == 1);
  const auto declared = tuning::FindDeclared("int a = 1;  // grove: try 1 2");
  const v1::EvaluationResult result =
      Choice({Fast(1), kCheated}, 2, false).Result(*declared, tuning::Combinations(*declared));
  CHECK(result.verdict() == v1::VERDICT_CHEATED);
  CHECK(result.reason() == "with a=2: why");
  CHECK_FALSE(result.combinations(0).chosen());
  CHECK_FALSE(result.combinations(1).chosen());
}

TEST_CASE("All combinations are reported with what became of them", "[combinations]") {
  const auto declared = tuning::FindDeclared("int a = 1;  // grove: try 1 2\nint b = x;  // grove: try x y");
  REQUIRE(declared.ok());
  const auto values = tuning::Combinations(*declared);
  CHECK(CombinationText(*declared, values[1]) == "a=1 b=y");
  Choice choice({Result(v1::VERDICT_CRASHED), Fast(2), kUntimed, kNoBuild}, 3, false);
  REQUIRE(choice.Wanted() == 1u);
  choice.Again(1, Fast(1.5));
  v1::EvaluationResult report = choice.Result(*declared, values);
  CHECK(report.reason() == "why");
  REQUIRE(report.combinations_size() == 4);
  CHECK(report.combinations(0).verdict() == v1::VERDICT_CRASHED);
  CHECK(report.combinations(0).reason() == "why");
  CHECK_FALSE(report.combinations(0).chosen());
  CHECK(report.combinations(1).chosen());
  CHECK(report.combinations(1).speedup() == 1.5);
  CHECK(report.timing().baselines(0).speedup() == 1.5);
  CHECK(report.combinations(1).parameters(1).name() == "b");
  CHECK(report.combinations(1).parameters(1).value() == "y");
  CHECK(report.combinations(2).seconds() == 0);
  // Where the second measurement did not succeed, it is said.
  Choice once({Fast(1), Fast(2)}, 2, false);
  once.Again(1, kNone);
  once.Again(0, kNone);
  CHECK(absl::StrContains(once.Result(*declared, values).reason(), "chosen by one measurement"));
}

TEST_CASE("A sweep ends after its time, and after three that have timed out", "[combinations]") {
  SweepBudget budget(absl::Seconds(600));
  CHECK(budget.WhyNoMore(absl::Seconds(599)).empty());
  CHECK(absl::StrContains(budget.WhyNoMore(absl::Seconds(601)), "those before it took 10m1s, and all may take 10m"));
  for (int i = 0; i < 2; ++i) budget.Tried(Result(v1::VERDICT_TIMED_OUT));
  budget.Tried(kWrong);
  CHECK(budget.WhyNoMore(absl::Seconds(1)).empty());
  budget.Tried(Result(v1::VERDICT_TIMED_OUT));
  CHECK(budget.WhyNoMore(absl::Seconds(1)) == "3 combinations before it have timed out");
  CHECK(NotTried("why").reason() == "not tried: why");
  CHECK(NotTried("why").verdict() == v1::VERDICT_UNMEASURABLE);
}

}  // namespace
}  // namespace grove::worker
