#include "worker/pipeline/attempts.h"

#include <catch2/catch.hpp>

namespace grove::worker {
namespace {

v1::EvaluationResult Unmeasurable(const std::string& stage, double seconds) {
  v1::EvaluationResult result;
  result.set_verdict(v1::VERDICT_UNMEASURABLE);
  result.set_reason("the GPU has other work");
  v1::StageTime& check = *result.add_stages();
  check.set_stage("check");
  check.set_seconds(0.5);
  v1::StageTime& last = *result.add_stages();
  last.set_stage(stage);
  last.set_seconds(seconds);
  return result;
}

TEST_CASE("Only a timing that was in vain, and not for long, is tried again", "[attempts]") {
  CHECK(WorthTimingAgain(Unmeasurable("time", 1)));
  CHECK_FALSE(WorthTimingAgain(Unmeasurable("time", kMostOfFirstAttempt + 1)));
  CHECK_FALSE(WorthTimingAgain(Unmeasurable("check", 1)));  // rounding decides, say: it would again
  CHECK_FALSE(WorthTimingAgain(v1::EvaluationResult()));
  v1::EvaluationResult without;
  without.set_verdict(v1::VERDICT_UNMEASURABLE);
  CHECK_FALSE(WorthTimingAgain(without));
  for (const v1::Verdict verdict : {v1::VERDICT_CORRECT, v1::VERDICT_CHEATED, v1::VERDICT_WRONG, v1::VERDICT_CRASHED,
                                    v1::VERDICT_TIMED_OUT, v1::VERDICT_LIMIT_EXCEEDED}) {
    v1::EvaluationResult other = Unmeasurable("time", 1);
    other.set_verdict(verdict);
    CHECK_FALSE(WorthTimingAgain(other));
  }
  v1::EvaluationResult full = Unmeasurable("time", 1);  // no room for both
  full.mutable_fault()->set_stage("time");
  CHECK_FALSE(WorthTimingAgain(full));
}

TEST_CASE("The second attempt tells of the first", "[attempts]") {
  const v1::EvaluationResult first = Unmeasurable("time", 1);
  v1::EvaluationResult timed;
  timed.set_verdict(v1::VERDICT_CORRECT);
  timed.set_reason("2x");
  timed.mutable_timing()->set_method("duet");
  timed.mutable_timing()->set_reruns(1);
  MergeFirstAttempt(first, &timed);
  CHECK(timed.timing().reruns() == 2);
  CHECK(timed.reason() == "2x");
  CHECK(timed.timing().method() ==
        "duet, in a second attempt, in new processes (of the first: the GPU has other work)");

  v1::EvaluationResult again = Unmeasurable("time", 1);
  MergeFirstAttempt(first, &again);
  CHECK(again.reason() == "in two attempts: the GPU has other work");

  v1::EvaluationResult wrong;
  wrong.set_verdict(v1::VERDICT_WRONG);
  wrong.set_reason("output 0 is off");
  MergeFirstAttempt(first, &wrong);
  CHECK(wrong.reason() == "output 0 is off");
  CHECK_FALSE(wrong.has_timing());
}

}  // namespace
}  // namespace grove::worker
