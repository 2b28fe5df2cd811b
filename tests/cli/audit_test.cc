// The corpus of `grove audit`: what a manifest may say, which jobs are made of it, and what its results are worth.
#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <set>

#include "clients/cli/audit_corpus.h"
#include "clients/cli/audit_plan.h"
#include "clients/cli/audit_score.h"
#include "tests/cli/samples.h"

namespace grove::cli {
namespace {

AuditSources Sources(std::vector<std::string> files) {
  AuditSources sources;
  for (const std::string& file : files) sources.files[file] = "source of " + file;
  sources.problems["relu"].set_source("the problem");
  sources.problems["relu"].set_name("relu");
  sources.problems["large"].set_source("the large one");
  return sources;
}

std::string Manifest(const std::string& id, const std::string& more) {
  return "id = \"" + id +
         "\"\ntitle = \"A title\"\nwhat = \"What\"\nsource = \"ours\"\nlayer = \"judge\"\nproblem = " + "\"relu\"\n" +
         more;
}

absl::StatusOr<AuditCase> Parse(const std::string& id, const std::string& more, std::vector<std::string> files,
                                const std::string& group = "replay") {
  return ParseAuditManifest(Manifest(id, more), "corpus/" + group + "/" + id + "-slug/manifest.toml", group,
                            Sources(std::move(files)));
}

std::string Message(const absl::StatusOr<AuditCase>& parsed) { return std::string(parsed.status().message()); }

bool Contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Two cases that are compared with one control, a sequence, and one that is followed by the control.
AuditCorpus Corpus() {
  AuditCorpus corpus;
  const auto add = [&](absl::StatusOr<AuditCase> one) {
    INFO(Message(one));
    REQUIRE(one.ok());
    corpus.cases.push_back(*std::move(one));
  };
  add(Parse("C01", "expect = [\"WRONG\"]", {"a.cpp", "b.py", "c.cu"}));
  add(Parse("C02", "gains_nothing = true\ntwin = \"H01\"", {"a.cpp", "b.py"}));
  add(Parse("C03", "gains_nothing = true\nmax_gain = 0.5\ntwin = \"H01\"", {"a.cpp"}));
  add(Parse("C04", "expect = [\"WRONG\"]\nsequence = true\n[files.\"1.cpp\"]\nexpect = [\"CORRECT\"]",
            {"1.cpp", "2.cpp"}));
  add(Parse("C05", "expect = [\"CRASHED\"]\nthen = \"H01\"\nrepeat = 2", {"a.cpp"}));
  add(Parse("H01", "", {"a.cpp", "b.py", "c.cu"}, "controls"));
  return corpus;
}

std::vector<size_t> All(const AuditCorpus& corpus) { return *SelectAuditCases(corpus, {}); }

// As on a GPU, where small gains count.
v1::EvaluationResult Timed(double speedup) {
  v1::EvaluationResult result = CorrectResult(speedup, speedup, speedup);
  result.mutable_device()->set_kind(v1::DEVICE_KIND_CUDA);
  return result;
}

AuditOutcome Outcome(const AuditCorpus& corpus, size_t index, size_t file, const v1::EvaluationResult& result,
                     double twin = 0) {
  AuditOutcome outcome;
  outcome.entry = {.judged_case = index, .file_case = index, .file = file};
  outcome.result = result;
  outcome.twin_speedup = twin;
  JudgeAudit(corpus, &outcome);
  return outcome;
}

v1::EvaluationResult Verdict(v1::Verdict verdict) {
  v1::EvaluationResult result;
  result.set_verdict(verdict);
  return result;
}

TEST_CASE("A manifest says what is tried, on which devices, and what must come of it", "[audit]") {
  const auto one = Parse("C01",
                         "problem_cuda = \"large\"\nexpect = [\"WRONG\", \"CHEATED\"]\nbuild_flags = [\"-O1\"]\n"
                         "[options]\ntrials = 4\ntolerance = \"1e-4,1e-3\"\nwork = \"own_kernels\"\ncache = \"warm\"\n"
                         "distributions = [\"sparse\"]\n[limits]\ncall_wall_seconds = \"2s\"\n"
                         "[files.\"b.py\"]\ndevices = [\"cuda\"]\nexpect = [\"CRASHED\"]",
                         {"a.cpp", "b.py", "c.cu"});
  INFO(Message(one));
  REQUIRE(one.ok());
  CHECK(one->problem.source() == "the problem");
  CHECK(one->problem_cuda.source() == "the large one");
  CHECK(one->options.trials() == 4);
  CHECK(one->options.skip_timing());
  CHECK(one->options.baselines().empty());
  CHECK(one->options.tolerance().rtol() == 1e-3);
  CHECK(one->options.work() == v1::WORK_POLICY_OWN_KERNELS);
  CHECK(one->options.cache() == v1::CACHE_POLICY_WARM);
  CHECK(one->options.distributions(0) == v1::INPUT_DISTRIBUTION_SPARSE);
  CHECK(one->options.limits().call_wall_seconds() == 2);
  REQUIRE(one->files.size() == 3);
  CHECK((one->files[0].on_cpu && !one->files[0].on_cuda));
  CHECK((!one->files[1].on_cpu && one->files[1].on_cuda));
  CHECK((!one->files[2].on_cpu && one->files[2].on_cuda));
  CHECK(one->files[0].expect.verdicts == std::vector<v1::Verdict>{v1::VERDICT_WRONG, v1::VERDICT_CHEATED});
  CHECK(one->files[1].expect.verdicts == std::vector<v1::Verdict>{v1::VERDICT_CRASHED});
  CHECK(one->files[0].candidate.name() == "C01/a.cpp");
  CHECK(one->files[0].candidate.build_flags(0) == "-O1");
}

TEST_CASE("Timing is done only where a speed is what counts", "[audit]") {
  CHECK(Parse("C01", "expect = [\"WRONG\"]", {"a.cpp"})->options.skip_timing());
  CHECK_FALSE(Parse("C01", "expect = [\"WRONG\"]\n[options]\ntiming = true", {"a.cpp"})->options.skip_timing());
  CHECK_FALSE(Parse("C01", "gains_nothing = true\ntwin = \"H01\"", {"a.cpp"})->options.skip_timing());
  CHECK_FALSE(Parse("H01", "min_speedup = 3", {"a.cpp"}, "controls")->options.skip_timing());
}

TEST_CASE("What is wrong in a manifest is said with its line", "[audit]") {
  struct Row {
    const char* more;
    const char* what;
  };
  for (const Row& row : std::vector<Row>{
           {"expects = [\"WRONG\"]", "did you mean 'expect'"},
           {"expect = [\"WORNG\"]", "no verdict"},
           {"expect = \"WRONG\"", "list"},
           {"", "expect is missing"},
           {"gains_nothing = true", "needs a twin"},
           {"expect = [\"WRONG\"]\ndevices = [\"tpu\"]", "cpu or cuda"},
           {"expect = [\"WRONG\"]\nproblem_cuda = \"none\"", "no such problem"},
           {"expect = [\"WRONG\"]\n[options]\ntrails = 3", "options.trails"},
           {"expect = [\"WRONG\"]\n[options]\nwork = \"some\"", "own_kernels"},
           {"expect = [\"WRONG\"]\n[limits]\nno_such = \"1\"", "limits"},
           {"expect = [\"WRONG\"]\n[files.\"gone.cpp\"]\nexpect = [\"WRONG\"]", "gone.cpp"},
           {"expect = [\"WRONG\"\n", "manifest.toml:"},
       }) {
    CAPTURE(row.more);
    const auto parsed = Parse("C01", row.more, {"a.cpp"});
    REQUIRE_FALSE(parsed.ok());
    CHECK(absl::IsInvalidArgument(parsed.status()));
    CHECK(Contains(Message(parsed), "manifest.toml:"));
    CHECK(Contains(Message(parsed), row.what));
  }
  CHECK(Contains(Message(Parse("C01", "expect = [\"WRONG\"]", {})), "holds no"));
  const auto other = ParseAuditManifest(Manifest("C01", "expect = [\"WRONG\"]"), "corpus/replay/C02-x/manifest.toml",
                                        "replay", Sources({"a.cpp"}));
  CHECK(Contains(Message(other), "does not begin with 'C01-'"));
}

TEST_CASE("Cases of one problem share jobs, twins come along once, and what must stand alone does", "[audit]") {
  const AuditCorpus corpus = Corpus();
  const auto plan = PlanAudit(corpus, All(corpus), v1::DEVICE_KIND_CPU);
  REQUIRE(plan.ok());
  // Untimed: C01 and the control. Alone: C04 twice, C05, what comes after it. Timed: C02 and C03.
  REQUIRE(plan->size() == 6);
  const auto names = [](const AuditBatch& batch) {
    std::multiset<std::string> all;
    for (const v1::Candidate& candidate : batch.spec.eval().candidates()) all.insert(candidate.name());
    return all;
  };
  CHECK(names((*plan)[0]) == std::multiset<std::string>{"C01/a.cpp", "C01/b.py", "H01/a.cpp", "H01/b.py"});
  CHECK(names((*plan)[1]) == std::multiset<std::string>{"C04/1.cpp"});
  CHECK(names((*plan)[2]) == std::multiset<std::string>{"C04/2.cpp"});
  CHECK(names((*plan)[3]) == std::multiset<std::string>{"C05/a.cpp", "C05/a.cpp"});
  CHECK(names((*plan)[4]) == std::multiset<std::string>{"H01/a.cpp"});
  CHECK((*plan)[4].entries[0].role == AuditEntry::Role::kThen);
  CHECK((*plan)[4].entries[0].judged_case == 4);
  for (size_t i = 0; i < 6; ++i) {
    CHECK((*plan)[i].alone == (i >= 1 && i <= 4));
    CHECK((*plan)[i].spec.eval().options().skip_timing() == (i != 5));
    CHECK((*plan)[i].spec.eval().options().device() == v1::DEVICE_KIND_CPU);
    CHECK((*plan)[i].entries.size() == static_cast<size_t>((*plan)[i].spec.eval().candidates_size()));
  }
  const AuditBatch& timed = (*plan)[5];
  CHECK(names(timed) == std::multiset<std::string>{"C02/a.cpp", "C02/b.py", "C03/a.cpp", "H01/a.cpp", "H01/b.py"});
  int pairs = 0;
  for (const AuditEntry& twin : timed.entries) {
    for (const AuditEntry& attempt : timed.entries) {
      if (!IsTwinOf(corpus, twin, attempt)) continue;
      ++pairs;
      CHECK(corpus.cases[twin.file_case].files[twin.file].name ==
            corpus.cases[attempt.file_case].files[attempt.file].name);
    }
  }
  CHECK(pairs == 3);
  // On a GPU only what runs there.
  AuditSelection selection;
  selection.ids = {"C01"};
  const auto cuda = PlanAudit(corpus, *SelectAuditCases(corpus, selection), v1::DEVICE_KIND_CUDA);
  REQUIRE(cuda.ok());
  REQUIRE(cuda->size() == 1);
  CHECK(names((*cuda)[0]) == std::multiset<std::string>{"C01/b.py", "C01/c.cu"});
}

TEST_CASE("Many cases of one problem make several jobs of bounded size", "[audit]") {
  AuditCorpus corpus;
  for (int i = 10; i < 80; ++i) {
    corpus.cases.push_back(*Parse("C" + std::to_string(i), "expect = [\"WRONG\"]", {"a.cpp"}));
  }
  const auto plan = PlanAudit(corpus, All(corpus), v1::DEVICE_KIND_CPU);
  REQUIRE(plan.ok());
  std::multiset<size_t> seen;
  for (const AuditBatch& batch : *plan) {
    CHECK(batch.entries.size() <= kAuditBatch);
    for (const AuditEntry& entry : batch.entries) seen.insert(entry.judged_case);
  }
  CHECK(plan->size() == 3);
  CHECK(seen.size() == 70);
  CHECK(std::set<size_t>(seen.begin(), seen.end()).size() == 70);
}

TEST_CASE("Cases and classes are chosen by name", "[audit]") {
  const AuditCorpus corpus = Corpus();
  AuditSelection selection;
  selection.ids = {"C02"};
  selection.classes = {"controls"};
  CHECK(*SelectAuditCases(corpus, selection) == std::vector<size_t>{1, 5});
  selection.ids = {"C99"};
  CHECK_FALSE(SelectAuditCases(corpus, selection).ok());
  selection = {};
  selection.classes = {"none"};
  CHECK_FALSE(SelectAuditCases(corpus, selection).ok());
}

TEST_CASE("A twin of another kind is no twin", "[audit]") {
  AuditCorpus corpus;
  corpus.cases.push_back(*Parse("C01", "gains_nothing = true\ntwin = \"H01\"", {"a.py"}));
  corpus.cases.push_back(*Parse("H01", "", {"a.cpp"}, "controls"));
  const auto plan = PlanAudit(corpus, All(corpus), v1::DEVICE_KIND_CPU);
  REQUIRE_FALSE(plan.ok());
  CHECK(Contains(std::string(plan.status().message()), "C01/a.py"));
}

TEST_CASE("A trick is stopped by a listed verdict and by no other", "[audit]") {
  const AuditCorpus corpus = Corpus();
  CHECK(Outcome(corpus, 0, 0, WrongResult()).good);
  for (const v1::Verdict verdict : {v1::VERDICT_CORRECT, v1::VERDICT_BUILD_FAILED, v1::VERDICT_CRASHED,
                                    v1::VERDICT_TIMED_OUT, v1::VERDICT_UNMEASURABLE}) {
    const AuditOutcome outcome = Outcome(corpus, 0, 0, Verdict(verdict));
    CHECK_FALSE(outcome.good);
    CHECK(Contains(outcome.why, "WRONG"));
  }
  CHECK(Outcome(corpus, 5, 0, CorrectResult(1, 1, 1)).good);
  CHECK_FALSE(Outcome(corpus, 5, 0, WrongResult()).good);
}

TEST_CASE("CHEATED without evidence does not count", "[audit]") {
  AuditCorpus corpus;
  corpus.cases.push_back(*Parse("C01", "expect = [\"CHEATED\"]", {"a.cpp"}));
  v1::EvaluationResult result = Verdict(v1::VERDICT_CHEATED);
  CHECK_FALSE(Outcome(corpus, 0, 0, result).good);
  result.mutable_fault()->set_evidence("claimed 1 us, took 3 ms");
  CHECK(Outcome(corpus, 0, 0, result).good);
}

TEST_CASE("Being right is enough where nothing is gained over the honest twin", "[audit]") {
  const AuditCorpus corpus = Corpus();
  // The default allows a quarter, C03 a half.
  CHECK(Outcome(corpus, 1, 0, Timed(2.4), 2).good);
  CHECK_FALSE(Outcome(corpus, 1, 0, Timed(2.6), 2).good);
  CHECK(Outcome(corpus, 2, 0, Timed(2.6), 2).good);
  CHECK_FALSE(Outcome(corpus, 2, 0, Timed(3.1), 2).good);
  // Without figures nothing is proven.
  CHECK_FALSE(Outcome(corpus, 1, 0, Timed(1), 0).good);
  CHECK_FALSE(Outcome(corpus, 1, 0, Verdict(v1::VERDICT_CORRECT), 2).good);
  // No figure is no gain, but for a control it is a failure.
  CHECK(Outcome(corpus, 1, 0, Verdict(v1::VERDICT_UNMEASURABLE), 2).good);
  CHECK_FALSE(Outcome(corpus, 5, 0, Verdict(v1::VERDICT_UNMEASURABLE)).good);
  // What only its time speaks against is measured again, what is wrong otherwise is not.
  CHECK(Outcome(corpus, 1, 0, Timed(2.6), 2).by_chance);
  CHECK(Outcome(corpus, 5, 0, Verdict(v1::VERDICT_UNMEASURABLE)).by_chance);
  CHECK_FALSE(Outcome(corpus, 5, 0, WrongResult()).by_chance);
  CHECK_FALSE(Outcome(corpus, 0, 0, Timed(9)).by_chance);
  // A busy machine lets time limits pass; who was not listed with it is not good for that.
  CHECK(Outcome(corpus, 5, 0, Verdict(v1::VERDICT_TIMED_OUT)).by_chance);
  CHECK_FALSE(Outcome(corpus, 5, 0, Verdict(v1::VERDICT_TIMED_OUT)).good);
  // Being wrong is not what it was to show.
  CHECK_FALSE(Outcome(corpus, 1, 0, WrongResult(), 2).good);
  // A CPU that others use tells less.
  CHECK(Outcome(corpus, 1, 0, CorrectResult(3.9, 3.8, 4), 2).good);
  CHECK_FALSE(Outcome(corpus, 1, 0, CorrectResult(4.1, 4, 4.2), 2).good);
}

TEST_CASE("What an attempt left behind counts whatever its verdict, and a clock that was set only twice", "[audit]") {
  const AuditCorpus corpus = Corpus();
  AuditOutcome clean = Outcome(corpus, 0, 0, WrongResult());
  REQUIRE(clean.good);
  AuditOutcome moved = clean;
  moved.clock = "the clock was set by 3 s";
  JudgeAudit(corpus, &moved);
  CHECK_FALSE(moved.good);
  CHECK(moved.by_chance);
  CHECK(moved.why == moved.clock);
  AuditOutcome traced = moved;
  traced.traces = {"a process is still there"};
  JudgeAudit(corpus, &traced);
  CHECK_FALSE(traced.good);
  CHECK_FALSE(traced.by_chance);
  // Each judges anew what it settles: neither may get lost on the way.
  CHECK(SettleAudit(corpus, {moved, clean}).good);
  CHECK_FALSE(SettleAudit(corpus, {moved, moved}).good);
  CHECK_FALSE(SettleAudit(corpus, {traced, clean, clean}).good);
}

TEST_CASE("A gain must show every time that it is measured", "[audit]") {
  const AuditCorpus corpus = Corpus();
  const auto settle = [&](std::vector<std::pair<v1::EvaluationResult, double>> rounds) {
    std::vector<AuditOutcome> all;
    for (const auto& [result, twin] : rounds) all.push_back(Outcome(corpus, 1, 0, result, twin));
    return SettleAudit(corpus, all);
  };
  const v1::EvaluationResult void_round = Verdict(v1::VERDICT_UNMEASURABLE);
  CHECK_FALSE(settle({{Timed(9), 1}, {Timed(8), 1}, {Timed(9), 2}}).good);
  CHECK(settle({{Timed(9), 1}, {Timed(1), 1}}).good);
  CHECK(settle({{Timed(3), 1}, {Timed(3), 2.9}}).good);  // the twin can be as fast
  // A round without a figure does not excuse it.
  CHECK_FALSE(settle({{Timed(9), 1}, {void_round, 1}, {void_round, 1}}).good);
  CHECK(settle({{void_round, 1}, {void_round, 1}}).good);
  CHECK_FALSE(settle({{Timed(1), 1}, {WrongResult(), 1}}).good);
}

TEST_CASE("What differed from round to round is told, also of what counts as good", "[audit]") {
  const AuditCorpus corpus = Corpus();
  const auto settle = [&](const std::vector<double>& speeds) {
    std::vector<AuditOutcome> all;
    for (const double speed : speeds) all.push_back(Outcome(corpus, 1, 0, Timed(speed), 1));
    return SettleAudit(corpus, all);
  };
  CHECK(settle({1, 1, 1}).rounds.empty());
  CHECK(settle({9, 9, 9}).rounds.empty());
  const AuditOutcome varied = settle({9, 1, 8});
  REQUIRE(varied.good);
  CHECK(Contains(varied.rounds, "not as it must be in 2 of 3 rounds: CORRECT 9"));
  CHECK(Contains(varied.rounds, "gained 800 %"));
  const AuditScore score = ScoreAudit(corpus, All(corpus), v1::DEVICE_KIND_CPU, {varied});
  CHECK(score.cases[1].state == AuditState::kGood);
  CHECK(Contains(RenderAuditMiss(corpus, score.cases[1], Style()), "VARIED   C02 "));
  CHECK(Contains(RenderAuditMiss(corpus, score.cases[1], Style()), "in 2 of 3 rounds"));
  CHECK(Contains(AuditDocument(corpus, score, {}, ExitCode::kOk), "in 2 of 3 rounds"));
}

TEST_CASE("A control has bounds on its speed where its manifest sets them", "[audit]") {
  AuditCorpus corpus;
  corpus.cases.push_back(*Parse("H01", "min_speedup = 3\nmax_speedup = 10", {"a.cpp"}, "controls"));
  CHECK(Outcome(corpus, 0, 0, CorrectResult(5, 4, 6)).good);
  CHECK_FALSE(Outcome(corpus, 0, 0, CorrectResult(2, 1, 6)).good);
  CHECK_FALSE(Outcome(corpus, 0, 0, CorrectResult(11, 10, 12)).good);
}

TEST_CASE("The score counts by class, and every case has one state", "[audit]") {
  AuditCorpus corpus = Corpus();
  corpus.cases.push_back(*Parse("C06", "expect = [\"WRONG\"]\nknown_miss = \"because\"", {"a.cpp"}));
  corpus.cases.push_back(*Parse("C07", "expect = [\"WRONG\"]\nknown_miss = \"because\"", {"a.cpp"}));
  corpus.cases.push_back(*Parse("C08", "expect = [\"WRONG\"]", {"a.cu"}));
  corpus.cases.push_back(*Parse("C09", "expect = [\"WRONG\"]", {"a.cpp"}));
  std::vector<AuditOutcome> outcomes = {
      Outcome(corpus, 0, 0, WrongResult()),                 // C01: one file stopped,
      Outcome(corpus, 0, 1, CorrectResult(3, 3, 3)),        // the other not
      Outcome(corpus, 1, 0, CorrectResult(1, 1, 1), 1),     // C02: no gain
      Outcome(corpus, 2, 0, CorrectResult(9, 9, 9), 1),     // C03: a gain
      Outcome(corpus, 3, 0, CorrectResult(1, 1, 1)),        // C04
      Outcome(corpus, 3, 1, WrongResult()),                 //
      Outcome(corpus, 4, 0, Verdict(v1::VERDICT_CRASHED)),  // C05: stopped, but see below
      Outcome(corpus, 5, 0, CorrectResult(1, 1, 1)),        // H01
      Outcome(corpus, 6, 0, CorrectResult(1, 1, 1)),        // C06: known
      Outcome(corpus, 7, 0, WrongResult()),                 // C07: no longer
      Outcome(corpus, 9, 0, v1::EvaluationResult()),        // C09: no verdict
  };
  AuditOutcome after;
  after.entry = {.role = AuditEntry::Role::kThen, .judged_case = 4, .file_case = 5, .file = 0};
  after.result = WrongResult();
  JudgeAudit(corpus, &after);
  outcomes.push_back(after);
  const AuditScore score = ScoreAudit(corpus, All(corpus), v1::DEVICE_KIND_CPU, outcomes);
  std::map<std::string, AuditState> states;
  for (const AuditCaseScore& one : score.cases) states[corpus.cases[one.index].id] = one.state;
  CHECK(states["C01"] == AuditState::kMissed);
  CHECK(states["C02"] == AuditState::kGood);
  CHECK(states["C03"] == AuditState::kMissed);
  CHECK(states["C04"] == AuditState::kGood);
  CHECK(states["C05"] == AuditState::kMissed);  // the next evaluation was harmed
  CHECK(states["H01"] == AuditState::kGood);
  CHECK(states["C06"] == AuditState::kKnownMiss);
  CHECK(states["C07"] == AuditState::kGood);
  CHECK(states["C08"] == AuditState::kNotForDevice);
  CHECK(states["C09"] == AuditState::kNotRun);
  CHECK(score.mended == std::vector<std::string>{"C07"});
  CHECK(score.exploits.cases == 8);
  CHECK(score.exploits.good == 3);
  CHECK(score.exploits.missed == 3);
  CHECK(score.exploits.known == 1);
  CHECK(score.exploits.not_run == 1);
  CHECK(score.exploits.other_device == 1);
  CHECK(score.controls.good == 1);
  CHECK(ExitCodeOfAudit(score) == ExitCode::kAuditMissed);

  const std::string text = RenderAuditScore(corpus, score, Style());
  CHECK(Contains(text, "3 of 8 exploits stopped, 0 of 1 honest controls rejected"));
  CHECK(Contains(text, "C07"));
  CHECK(Contains(RenderAuditMiss(corpus, score.cases[0], Style()), "MISSED   C01 b.py"));
  CHECK(Contains(RenderAuditMiss(corpus, score.cases[2], Style()), "gained 800 %"));
  CHECK(Contains(RenderAuditMiss(corpus, score.cases[4], Style()), "HARMED   C05 then H01/a.cpp"));
  CHECK(RenderAuditMiss(corpus, score.cases[1], Style()).empty());

  const auto document = nlohmann::json::parse(AuditDocument(corpus, score, {}, ExitCode::kAuditMissed));
  CHECK(document["schema"] == "grove.v1/audit");
  CHECK(document["exit_code"] == 1);
  CHECK(document["classes"]["replay"]["missed"] == 3);
  CHECK(document["cases"].size() == 10);
  CHECK(document["cases"][2]["attempts"][0]["twin_speedup"] == 1);
}

TEST_CASE("An audit passes with known misses, and does not where something was not run", "[audit]") {
  AuditCorpus corpus;
  corpus.cases.push_back(*Parse("C01", "expect = [\"WRONG\"]\nknown_miss = \"because\"", {"a.cpp"}));
  corpus.cases.push_back(*Parse("C02", "expect = [\"WRONG\"]", {"a.cpp"}));
  std::vector<AuditOutcome> outcomes = {Outcome(corpus, 0, 0, CorrectResult(1, 1, 1)),
                                        Outcome(corpus, 1, 0, WrongResult())};
  CHECK(ExitCodeOfAudit(ScoreAudit(corpus, {0, 1}, v1::DEVICE_KIND_CPU, outcomes)) == ExitCode::kOk);
  outcomes.pop_back();
  CHECK(ExitCodeOfAudit(ScoreAudit(corpus, {0, 1}, v1::DEVICE_KIND_CPU, outcomes)) == ExitCode::kInfrastructure);
}

TEST_CASE("The corpus of this project can be read, and has a case of its own for each id", "[audit]") {
  const auto corpus = LoadAuditCorpus(GROVE_AUDIT_CORPUS);
  INFO(corpus.status());
  REQUIRE(corpus.ok());
  int controls = 0;
  for (const AuditCase& one : corpus->cases) controls += one.control();
  CHECK(controls >= 40);
  for (const v1::DeviceKind device : {v1::DEVICE_KIND_CPU, v1::DEVICE_KIND_CUDA}) {
    const auto plan = PlanAudit(*corpus, All(*corpus), device);
    INFO(plan.status());
    REQUIRE(plan.ok());
    for (const AuditBatch& batch : *plan) CHECK_FALSE(batch.entries.empty());
  }
  CHECK_FALSE(LoadAuditCorpus("/nonexistent").ok());
}

}  // namespace
}  // namespace grove::cli
