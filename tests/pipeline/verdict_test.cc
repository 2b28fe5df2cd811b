#include "worker/pipeline/verdict.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace grove::worker {
namespace {

using nlohmann::json;
using sandbox::Ending;

TEST_CASE("A judge's result becomes a message, unknown fields and NaN included", "[verdict]") {
  const auto result = ParseResult(json::parse(R"({"verdict":"VERDICT_WRONG","reason":"no","new_field":1,
      "correctness":{"trials":2,"outputs":[{"index":0,"mismatched":"7","worst":{"index":["3"],"expected":"NaN","got":1.5}}]}})"));
  REQUIRE(result.ok());
  CHECK(result->verdict() == v1::VERDICT_WRONG);
  CHECK(result->correctness().outputs(0).mismatched() == 7);
  CHECK(result->correctness().outputs(0).worst().got() == 1.5);
}

TEST_CASE("What is no result is an error and never a verdict", "[verdict]") {
  const auto text = GENERATE("{}", "[]", R"({"verdict":"VERDICT_UNSPECIFIED"})", R"({"verdict":"NONSENSE"})",
                             R"({"verdict":99})", R"({"verdict":"VERDICT_CORRECT","correctness":"x"})", "null", "3");
  CAPTURE(text);
  CHECK_FALSE(ParseResult(json::parse(text)).ok());
}

v1::EvaluationResult Crashed() {
  v1::EvaluationResult result;
  result.set_verdict(v1::VERDICT_CRASHED);
  result.mutable_fault()->set_stage("check");
  return result;
}

TEST_CASE("A limit names itself in the verdict", "[verdict]") {
  Ending ending;
  ending.kind = Ending::Kind::kLimit;
  ending.limit = "memory_bytes";
  ending.limit_set = 100;
  ending.limit_reached = 120;
  v1::EvaluationResult result = Crashed();
  MergeEnding(ending, true, false, &result);
  CHECK(result.verdict() == v1::VERDICT_LIMIT_EXCEEDED);
  CHECK(result.fault().limit() == "memory_bytes");
  CHECK(result.fault().limit_set() == 100);
  CHECK(result.fault().limit_reached() == 120);
  CHECK(result.fault().stage() == "check");
  ending.limit = "run_wall_seconds";
  result = Crashed();
  MergeEnding(ending, true, false, &result);
  CHECK(result.verdict() == v1::VERDICT_TIMED_OUT);
}

TEST_CASE("A signal and an exit code are named", "[verdict]") {
  Ending ending;
  ending.kind = Ending::Kind::kSignaled;
  ending.signal = 11;
  v1::EvaluationResult result = Crashed();
  MergeEnding(ending, true, false, &result);
  CHECK(result.fault().signal_name() == "SIGSEGV");
  CHECK_THAT(result.reason(), Catch::Contains("SIGSEGV during check"));
  ending.kind = Ending::Kind::kExited;
  ending.exit_code = 3;
  result = Crashed();
  MergeEnding(ending, true, false, &result);
  CHECK(result.fault().exit_code() == 3);
}

TEST_CASE("A verdict that the judge reached is not changed by our own kill", "[verdict]") {
  Ending ending;
  ending.kind = Ending::Kind::kKilled;
  for (v1::Verdict verdict : {v1::VERDICT_CORRECT, v1::VERDICT_WRONG, v1::VERDICT_CHEATED, v1::VERDICT_UNMEASURABLE,
                              v1::VERDICT_TIMED_OUT, v1::VERDICT_CRASHED}) {
    v1::EvaluationResult result;
    result.set_verdict(verdict);
    result.set_reason("as judged");
    MergeEnding(ending, false, false, &result);
    CHECK(result.verdict() == verdict);
    CHECK(result.reason() == "as judged");
  }
}

TEST_CASE("Text from a sandbox is cut and repaired to UTF-8", "[verdict]") {
  CHECK(RepairUtf8("good \xC3\xA9", 100) == "good \xC3\xA9");
  CHECK(RepairUtf8("bad \xFF\xC3", 100) == "bad ??");
  CHECK(RepairUtf8("\xED\xA0\x80", 100) == "???");  // a surrogate
  CHECK(RepairUtf8("ab\xC3\xA9", 3) == "ab");
  v1::EvaluationResult result = Crashed();
  Ending ending;
  ending.kind = Ending::Kind::kSignaled;
  ending.signal = 6;
  ending.err = std::string(100000, 'x') + "\xFFtail";
  MergeEnding(ending, true, false, &result);
  CHECK(result.fault().stderr_tail().size() <= 8192);
  CHECK_THAT(result.fault().stderr_tail(), Catch::EndsWith("?tail"));
  // Who has run shapes that are held out is not passed on.
  v1::EvaluationResult quiet = Crashed();
  MergeEnding(ending, true, true, &quiet);
  CHECK(quiet.verdict() == v1::VERDICT_CRASHED);
  CHECK(quiet.fault().stderr_tail() == "");
}

}  // namespace
}  // namespace grove::worker
