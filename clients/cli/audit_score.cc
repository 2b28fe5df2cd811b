#include "clients/cli/audit_score.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace grove::cli {
namespace {

using Json = nlohmann::ordered_json;

const AuditFile& FileOf(const AuditCorpus& corpus, const AuditEntry& entry) {
  return corpus.cases[entry.file_case].files[entry.file];
}

std::string VerdictNames(const AuditExpectation& expect) {
  std::vector<std::string> names;
  for (v1::Verdict verdict : expect.verdicts) names.push_back(VerdictName(verdict));
  if (expect.gains_nothing) {
    names.push_back("CORRECT without a gain over its twin");
  }
  return absl::StrJoin(names, ", ");
}

std::string SeenOf(const v1::EvaluationResult& result) {
  const v1::BaselineTiming* timing = RankingTiming(result);
  std::string seen = VerdictName(result.verdict());
  if (timing != nullptr && timing->speedup() > 0) {
    absl::StrAppend(&seen, " ", FormatSpeedup(timing->speedup(), timing->speedup_low(), timing->speedup_high()));
  }
  return seen;
}

// What is wrong with a CORRECT one, "" = nothing.
std::string WrongSpeed(const AuditExpectation& expect, const AuditOutcome& outcome) {
  if (!expect.NeedsTiming()) return "";
  const double speedup = SpeedupOf(outcome.result);
  if (!(speedup > 0)) return "it was not timed, and its speed is what counts";
  if (expect.min_speedup > 0 && speedup < expect.min_speedup) {
    return absl::StrFormat("its speedup must be at least %.4g", expect.min_speedup);
  }
  if (expect.max_speedup > 0 && speedup > expect.max_speedup) {
    return absl::StrFormat("its speedup must be at most %.4g", expect.max_speedup);
  }
  if (!expect.gains_nothing) return "";
  const double twin = outcome.twin_speedup;
  if (!(twin > 0)) return "the twin that it is compared with was not timed";
  const bool cpu = outcome.result.device().kind() == v1::DEVICE_KIND_CPU;
  if (speedup > twin * (1 + (cpu ? std::max(expect.max_gain, kLeastGainOnCpu) : expect.max_gain))) {
    return absl::StrFormat("its honest twin has %.4g, so it gained %.0f %%", twin, 100 * (speedup / twin - 1));
  }
  return "";
}

absl::string_view StateName(AuditState state) {
  switch (state) {
    case AuditState::kGood:
      return "good";
    case AuditState::kMissed:
      return "missed";
    case AuditState::kKnownMiss:
      return "known_miss";
    case AuditState::kNotRun:
      return "not_run";
    case AuditState::kNotForDevice:
      return "other_device";
  }
  return "";
}

void Count(AuditState state, AuditClassScore* score) {
  if (state == AuditState::kNotForDevice) {
    ++score->other_device;
    return;
  }
  ++score->cases;
  if (state == AuditState::kGood) ++score->good;
  if (state == AuditState::kMissed) ++score->missed;
  if (state == AuditState::kKnownMiss) ++score->known;
  if (state == AuditState::kNotRun) ++score->not_run;
}

Json ScoreJson(const AuditClassScore& score) {
  return Json{{"cases", score.cases},        {"good", score.good},       {"missed", score.missed},
              {"known_misses", score.known}, {"not_run", score.not_run}, {"other_device", score.other_device}};
}

std::string DevicesOf(const AuditCase& one) {
  bool cpu = false, cuda = false;
  for (const AuditFile& file : one.files) {
    cpu = cpu || file.on_cpu;
    cuda = cuda || file.on_cuda;
  }
  return absl::StrCat(cpu ? "cpu" : "", cpu && cuda ? "," : "", cuda ? "cuda" : "");
}

std::string Print(const Json& document) { return document.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

double SpeedupOf(const v1::EvaluationResult& result) {
  const v1::BaselineTiming* timing = RankingTiming(result);
  return timing == nullptr ? 0 : timing->speedup();
}

void JudgeAudit(const AuditCorpus& corpus, AuditOutcome* outcome) {
  const v1::EvaluationResult& result = outcome->result;
  const v1::Verdict verdict = result.verdict();
  outcome->good = outcome->by_chance = false;
  if (verdict == v1::VERDICT_UNSPECIFIED) {
    outcome->seen = "no verdict";
    if (outcome->why.empty()) outcome->why = "its evaluation could not be done";
    return;
  }
  outcome->seen = SeenOf(result);
  const AuditExpectation& expect = FileOf(corpus, outcome->entry).expect;
  const bool listed = std::find(expect.verdicts.begin(), expect.verdicts.end(), verdict) != expect.verdicts.end();
  const bool correct = verdict == v1::VERDICT_CORRECT;
  // No figure is no gain.
  const bool no_figure = verdict == v1::VERDICT_UNMEASURABLE;
  if (!outcome->traces.empty()) {
    outcome->why = absl::StrJoin(outcome->traces, "; ");
  } else if (!listed && !((correct || no_figure) && expect.gains_nothing)) {
    // Who was to gain nothing may be accused of its times alone, and one that is not rewarded gains nothing.
    outcome->by_chance =
        no_figure || verdict == v1::VERDICT_TIMED_OUT || (expect.gains_nothing && verdict == v1::VERDICT_CHEATED);
    outcome->why = absl::StrCat("must be ", VerdictNames(expect));
  } else if (verdict == v1::VERDICT_CHEATED && result.fault().evidence().empty()) {
    outcome->why = "CHEATED without evidence proves nothing";
  } else {
    outcome->why = correct ? WrongSpeed(expect, *outcome) : "";
    if (outcome->why.empty()) outcome->why = outcome->clock;
    outcome->good = outcome->why.empty();
    outcome->by_chance = !outcome->good;
  }
}

AuditOutcome SettleAudit(const AuditCorpus& corpus, std::vector<AuditOutcome> rounds) {
  double twin = 0;
  for (const AuditOutcome& one : rounds) twin = std::max(twin, one.twin_speedup);
  for (AuditOutcome& one : rounds) {
    one.twin_speedup = twin;
    JudgeAudit(corpus, &one);
  }
  const auto find = [&](const auto& is) { return std::find_if(rounds.begin(), rounds.end(), is); };
  auto chosen = find([](const AuditOutcome& one) { return !one.good && !one.by_chance; });
  if (chosen == rounds.end()) {
    chosen = find([](const AuditOutcome& one) { return one.good && one.result.verdict() != v1::VERDICT_UNMEASURABLE; });
  }
  if (chosen == rounds.end()) chosen = find([](const AuditOutcome& one) { return !one.good; });
  AuditOutcome settled = chosen == rounds.end() ? rounds.front() : *chosen;
  const auto bad = std::count_if(rounds.begin(), rounds.end(), [](const AuditOutcome& one) { return !one.good; });
  if (bad > 0 && bad < static_cast<int64_t>(rounds.size())) {
    settled.rounds =
        absl::StrCat("not as it must be in ", bad, " of ", rounds.size(),
                     " rounds: ", absl::StrJoin(rounds, "; ", [](std::string* out, const AuditOutcome& one) {
                       absl::StrAppend(out, one.seen, one.good ? "" : absl::StrCat(" (", one.why, ")"));
                     }));
  }
  return settled;
}

AuditScore ScoreAudit(const AuditCorpus& corpus, const std::vector<size_t>& chosen, v1::DeviceKind device,
                      const std::vector<AuditOutcome>& outcomes) {
  AuditScore score;
  for (size_t index : chosen) {
    const AuditCase& one = corpus.cases[index];
    AuditCaseScore scored;
    scored.index = index;
    for (const AuditOutcome& outcome : outcomes) {
      if (outcome.entry.judged_case != index || outcome.entry.role == AuditEntry::Role::kTwin) continue;
      scored.outcomes.push_back(outcome);
    }
    if (AppliesTo(one, device)) {
      const auto any = [&](const auto& is) { return std::any_of(scored.outcomes.begin(), scored.outcomes.end(), is); };
      const auto unjudged = [](const AuditOutcome& o) { return o.result.verdict() == v1::VERDICT_UNSPECIFIED; };
      if (any([&](const AuditOutcome& o) { return !o.good && !unjudged(o); })) {
        scored.state = one.known_miss.empty() ? AuditState::kMissed : AuditState::kKnownMiss;
      } else if (scored.outcomes.empty() || any(unjudged)) {
        scored.state = AuditState::kNotRun;
      } else {
        scored.state = AuditState::kGood;
        if (!one.known_miss.empty()) score.mended.push_back(one.id);
      }
    }
    Count(scored.state, &score.classes[one.group]);
    Count(scored.state, one.control() ? &score.controls : &score.exploits);
    score.cases.push_back(std::move(scored));
  }
  return score;
}

ExitCode ExitCodeOfAudit(const AuditScore& score) {
  if (score.exploits.missed + score.controls.missed > 0) return ExitCode::kAuditMissed;
  if (score.exploits.not_run + score.controls.not_run > 0) return ExitCode::kInfrastructure;
  return ExitCode::kOk;
}

std::string RenderAuditMiss(const AuditCorpus& corpus, const AuditCaseScore& one, const Style& style) {
  const AuditCase& judged = corpus.cases[one.index];
  std::string out;
  for (const AuditOutcome& outcome : one.outcomes) {
    if (outcome.good) {
      // Counted as good, and not hidden that it was not so every time.
      if (outcome.rounds.empty()) continue;
      absl::StrAppend(&out, style.Yellow("VARIED  "), " ", judged.id, " ", FileOf(corpus, outcome.entry).name, ": ",
                      judged.title, "\n          ", OneLine(outcome.rounds), "\n");
      continue;
    }
    const bool unjudged = outcome.result.verdict() == v1::VERDICT_UNSPECIFIED;
    const char* word = unjudged                                        ? "NOT RUN "
                       : one.state == AuditState::kKnownMiss           ? "KNOWN   "
                       : outcome.entry.role == AuditEntry::Role::kThen ? "HARMED  "
                       : judged.control()                              ? "REJECTED"
                                                                       : "MISSED  ";
    absl::StrAppend(&out, one.state == AuditState::kMissed ? style.Red(word) : style.Yellow(word), " ", judged.id, " ",
                    outcome.entry.role == AuditEntry::Role::kThen
                        ? absl::StrCat("then ", FileOf(corpus, outcome.entry).candidate.name())
                        : FileOf(corpus, outcome.entry).name,
                    ": ", judged.title, "\n          seen ", outcome.seen, "; ", OneLine(outcome.why));
    if (!judged.control() && !unjudged) absl::StrAppend(&out, "; layer: ", judged.layer);
    if (!outcome.rounds.empty()) absl::StrAppend(&out, "\n          ", OneLine(outcome.rounds));
    if (!outcome.result.reason().empty()) absl::StrAppend(&out, "\n          ", OneLine(outcome.result.reason()));
    if (!judged.known_miss.empty()) absl::StrAppend(&out, "\n          known: ", OneLine(judged.known_miss));
    if (!outcome.node.empty()) absl::StrAppend(&out, "\n          grove show ", outcome.node);
    absl::StrAppend(&out, "\n");
  }
  if (one.outcomes.empty() && one.state == AuditState::kNotRun) {
    absl::StrAppend(&out, style.Yellow("NOT RUN "), " ", judged.id, ": ", judged.title, "\n");
  }
  return out;
}

std::string RenderAuditScore(const AuditCorpus& corpus, const AuditScore& score, const Style& style) {
  (void)corpus;
  std::vector<std::vector<std::string>> rows;
  const auto cells = [](const std::string& name, const AuditClassScore& s) {
    return std::vector<std::string>{name,
                                    absl::StrCat(s.good, "/", s.cases),
                                    absl::StrCat(s.missed),
                                    absl::StrCat(s.known),
                                    absl::StrCat(s.not_run),
                                    absl::StrCat(s.other_device)};
  };
  for (const std::string& name : kAuditClasses) {
    const auto found = score.classes.find(name);
    if (found != score.classes.end()) rows.push_back(cells(name, found->second));
  }
  std::string out = Table({"class", "as it must be", "missed", "known", "not run", "other device"}, rows);
  if (!score.mended.empty()) {
    absl::StrAppend(&out, "known misses that are stopped by now: ", absl::StrJoin(score.mended, ", "), "\n");
  }
  const AuditClassScore &e = score.exploits, &c = score.controls;
  const std::string line = absl::StrCat(e.good, " of ", e.cases, " exploits stopped, ", c.missed, " of ", c.cases,
                                        " honest controls rejected");
  const bool clean = e.good == e.cases && c.good == c.cases;
  absl::StrAppend(&out, clean ? style.Green(line) : style.Red(line), "\n");
  return out;
}

std::string RenderAuditList(const AuditCorpus& corpus, const std::vector<size_t>& chosen) {
  std::vector<std::vector<std::string>> rows;
  for (size_t index : chosen) {
    const AuditCase& one = corpus.cases[index];
    rows.push_back({one.id, one.group, DevicesOf(one), one.layer, one.title});
  }
  return Table({"id", "class", "devices", "layer", "title"}, rows);
}

std::string AuditDocument(const AuditCorpus& corpus, const AuditScore& score, const AuditRun& run, ExitCode code) {
  Json document;
  document["schema"] = "grove.v1/audit";
  document["exit_code"] = static_cast<int>(code);
  document["corpus"] = run.corpus_folder;
  document["device"] = run.device;
  document["device_name"] = run.where.name();
  document["torch"] = run.where.torch();
  document["seconds"] = run.seconds;
  document["exploits"] = ScoreJson(score.exploits);
  document["controls"] = ScoreJson(score.controls);
  document["classes"] = Json::object();
  for (const auto& [name, one] : score.classes) document["classes"][name] = ScoreJson(one);
  document["mended"] = score.mended;
  document["cases"] = Json::array();
  for (const AuditCaseScore& scored : score.cases) {
    const AuditCase& one = corpus.cases[scored.index];
    Json attempts = Json::array();
    for (const AuditOutcome& outcome : scored.outcomes) {
      Json attempt{{"file", FileOf(corpus, outcome.entry).candidate.name()},
                   {"after", outcome.entry.role == AuditEntry::Role::kThen},
                   {"good", outcome.good},
                   {"verdict", VerdictName(outcome.result.verdict())},
                   {"seen", outcome.seen},
                   {"why", outcome.why},
                   {"rounds", outcome.rounds},
                   {"reason", outcome.result.reason()},
                   {"evidence", outcome.result.fault().evidence()},
                   {"node", outcome.node}};
      const double speedup = SpeedupOf(outcome.result);
      attempt["speedup"] = speedup > 0 ? Json(speedup) : Json(nullptr);
      attempt["twin_speedup"] = outcome.twin_speedup > 0 ? Json(outcome.twin_speedup) : Json(nullptr);
      attempts.push_back(std::move(attempt));
    }
    document["cases"].push_back({{"id", one.id},
                                 {"class", one.group},
                                 {"title", one.title},
                                 {"layer", one.layer},
                                 {"state", std::string(StateName(scored.state))},
                                 {"known_miss", one.known_miss},
                                 {"attempts", std::move(attempts)}});
  }
  return Print(document);
}

std::string AuditListDocument(const AuditCorpus& corpus, const std::vector<size_t>& chosen) {
  Json document;
  document["schema"] = "grove.v1/audit_list";
  document["cases"] = Json::array();
  for (size_t index : chosen) {
    const AuditCase& one = corpus.cases[index];
    Json files = Json::array();
    for (const AuditFile& file : one.files) {
      Json expect = Json::array();
      for (v1::Verdict verdict : file.expect.verdicts) expect.push_back(VerdictName(verdict));
      files.push_back({{"file", file.name},
                       {"cpu", file.on_cpu},
                       {"cuda", file.on_cuda},
                       {"expect", std::move(expect)},
                       {"gains_nothing", file.expect.gains_nothing}});
    }
    document["cases"].push_back({{"id", one.id},
                                 {"class", one.group},
                                 {"title", one.title},
                                 {"what", one.what},
                                 {"source", one.source},
                                 {"layer", one.layer},
                                 {"timed", !one.options.skip_timing()},
                                 {"twin", one.twin},
                                 {"known_miss", one.known_miss},
                                 {"files", std::move(files)}});
  }
  return Print(document);
}

}  // namespace grove::cli
