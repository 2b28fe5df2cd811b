#include "coordinator/engine/normalise.h"

#include <catch2/catch.hpp>

#include "coordinator/engine/bounds.h"

namespace grove::coordinator {
namespace {

std::string C(absl::string_view text) { return NormaliseSource(v1::CANDIDATE_FORMAT_CPP, text); }
std::string Py(absl::string_view text) { return NormaliseSource(v1::CANDIDATE_FORMAT_KERNELBENCH, text); }

TEST_CASE("Comments and spacing do not make another C++ program", "[normalise]") {
  CHECK(C("int  f( int a ) {\n  return a ; // twice\n}\n") == C("int f(int a){return a;}"));
  CHECK(C("a /* b */ + c") == C("a + c"));
  CHECK(C("#include <a>\n\n\nint x;") == C("#include <a> // why\nint x;"));
}

TEST_CASE("What tells programs apart stays", "[normalise]") {
  CHECK(C("a + +b") != C("a ++b"));
  CHECK(C("int x") != C("intx"));
  CHECK(C("#define f (x)") != C("#define f(x)"));
  CHECK(C("#define A\nint x;") != C("#define A int x;"));
  CHECK(C("\"a // b\"") != C("\"a "));
  CHECK(C("\"a  b\"") != C("\"a b\""));
  CHECK(C("R\"x( // )x\"") != C("R\"x( )x\""));
  CHECK(C("'\"' // x") == C("'\"'"));
  CHECK(C("1'000'000 // x") == C("1'000'000"));
  CHECK(C("1e +5") != C("1e+5"));
  CHECK(C("x = a.b") != C("x = a. b2"));
}

TEST_CASE("Comments and empty lines do not make another Python program, indentation does", "[normalise]") {
  CHECK(Py("x = 1  # one\n\n\ny = 2\n") == Py("x = 1\ny = 2"));
  CHECK(Py("if a:\n  b\n  c\n") != Py("if a:\n  b\nc\n"));
  CHECK(Py("x = '# no comment'") != Py("x = '"));
  CHECK(Py("x = '''a\n\n# b\n'''\n") != Py("x = '''a\n'''\n"));
  CHECK(Py("x = \"\\\"# \" # y") == Py("x = \"\\\"# \""));
}

TEST_CASE("Unfinished text is read to its end and no further", "[normalise]") {
  for (const char* text : {"/*", "//", "\"", "'", "R\"(", "R\"", "#", "\\", "a\\\n", "// \\", "'''", "\"\\"}) {
    CAPTURE(text);
    C(text);
    Py(text);
  }
  CHECK(true);
}

TEST_CASE("Flags and format count when sources are compared", "[normalise]") {
  v1::Candidate a;
  a.set_format(v1::CANDIDATE_FORMAT_CPP);
  a.set_source("int x;");
  v1::Candidate b = a;
  b.set_name("another name");
  CHECK(NormalisedSha256(a) == NormalisedSha256(b));
  b.add_build_flags("-O2");
  CHECK(NormalisedSha256(a) != NormalisedSha256(b));
}

TEST_CASE("What is to be tried counts when sources are compared, other comments do not", "[normalise]") {
  v1::Candidate a;
  a.set_format(v1::CANDIDATE_FORMAT_CPP);
  a.set_source("int x = 1;");
  v1::Candidate b = a;
  b.set_source("int x = 1;  // grove: tried 1 2");
  CHECK(NormalisedSha256(a) == NormalisedSha256(b));
  b.set_source("int x = 1;  // grove: try 1 2");
  CHECK(NormalisedSha256(a) != NormalisedSha256(b));
  v1::Candidate c = b;
  c.set_source("int x = 1;  // grove: try 1 2 4");
  CHECK(NormalisedSha256(b) != NormalisedSha256(c));
  // Which of two equal lines, and what cannot be followed, which is no equal of its own repair.
  b.set_source("int x = 1;  // grove: try 1 2\nint x = 1;");
  c.set_source("int x = 1;\nint x = 1;  // grove: try 1 2");
  CHECK(NormalisedSha256(b) != NormalisedSha256(c));
  b.set_source("int x = 2;  // grove: try 1 2");
  c.set_source("int x = 2;");
  CHECK(NormalisedSha256(b) != NormalisedSha256(c));
}

TEST_CASE("A text is cut between characters and repaired where it is no UTF-8", "[bounds]") {
  CHECK(Utf8Prefix("abc", 2) == "ab");
  CHECK(Utf8Prefix("a\xc3\xa9", 2) == "a");
  CHECK(Utf8Prefix("a\xc3\xa9", 3) == "a\xc3\xa9");
  CHECK(Utf8Prefix("a\xff\xc3", 9) == "a??");
  CHECK(IsValidUtf8("\xf0\x9f\x8c\xb3"));
  CHECK(!IsValidUtf8("\xc0\x80"));
  CHECK(!IsValidUtf8("\xed\xa0\x80"));
  CHECK(!IsValidUtf8("\xf4\x90\x80\x80"));
}

TEST_CASE("What a result leaves in the journal is bounded whatever the worker sends", "[bounds]") {
  v1::EvaluationResult result;
  result.set_verdict(v1::VERDICT_CORRECT);
  result.mutable_build()->set_log(std::string(1 << 20, 'x'));
  v1::BaselineTiming* baseline = result.mutable_timing()->add_baselines();
  baseline->set_speedup(2);
  for (int i = 0; i < 10'000; ++i) {
    baseline->add_reference_seconds(1);
    result.mutable_correctness()->add_outputs()->set_path(std::string(1000, 'y'));
    result.add_stages()->set_stage(std::string(1000, 'z'));
  }
  const v1::EvaluationResult bounded = BoundedResult(result);
  CHECK(bounded.ByteSizeLong() <= 8192);
  CHECK(bounded.timing().baselines(0).speedup() == 2);
  CHECK(bounded.verdict() == v1::VERDICT_CORRECT);
  LimitWholeResult(&result);
  CHECK(result.ByteSizeLong() <= kMaxResultBytes);
}

TEST_CASE("Many long operators do not cost a result the rest of what it tells", "[bounds]") {
  v1::EvaluationResult result;
  result.set_verdict(v1::VERDICT_CORRECT);
  result.mutable_correctness()->set_trials_passed(5);
  v1::WorkReport* work = result.mutable_work();
  work->set_policy(v1::WORK_POLICY_OWN_KERNELS);
  work->set_how(std::string(1000, 'h'));
  for (int i = 0; i < 64; ++i) {
    work->add_kernels()->set_name(std::string(200, 'k'));
    work->add_libraries(std::string(200, 'l'));
  }
  const v1::EvaluationResult bounded = BoundedResult(result);
  CHECK(bounded.ByteSizeLong() <= 8192);
  CHECK(bounded.correctness().trials_passed() == 5);
  CHECK(bounded.work().policy() == v1::WORK_POLICY_OWN_KERNELS);
  CHECK(bounded.work().kernels_size() == 8);
}

TEST_CASE("A long profile does not cost a result the rest of what it tells", "[bounds]") {
  v1::EvaluationResult result;
  result.set_verdict(v1::VERDICT_CORRECT);
  result.mutable_correctness()->set_trials_passed(5);
  v1::ProfileReport* profile = result.mutable_profile();
  profile->set_unavailable(std::string(5000, 'u'));
  profile->set_sass_sha256(std::string(5000, 's'));
  for (int i = 0; i < 100; ++i) {
    v1::KernelProfile* kernel = profile->add_kernels();
    for (std::string* text : {kernel->mutable_name(), kernel->mutable_grid(), kernel->mutable_block()}) {
      *text = std::string(500, 'k');
    }
    kernel->set_seconds(1e-5);
    for (int k = 0; k < 20; ++k) kernel->add_stalls()->set_reason(std::string(500, 'r'));
    profile->add_instructions()->set_precision(std::string(500, 'p'));
  }
  const v1::EvaluationResult bounded = BoundedResult(result);
  CHECK(bounded.ByteSizeLong() <= 8192);
  CHECK(bounded.correctness().trials_passed() == 5);
  REQUIRE(bounded.profile().kernels_size() == 4);
  CHECK(bounded.profile().kernels(3).seconds() == 1e-5);
  CHECK(bounded.profile().instructions_size() == 12);
}

}  // namespace
}  // namespace grove::coordinator
