#include "clients/cli/report.h"

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "clients/cli/compare_report.h"
#include "clients/cli/profile_report.h"

namespace grove::cli {
namespace {

constexpr size_t kLogLines = 30;  // compiler text in `eval`: enough for the first errors, not a page
constexpr size_t kStderrLines = 10;
constexpr int kSamplesShown = 20;  // raw pairs in `show`; --json has all

std::string Field(absl::string_view name, absl::string_view value) {
  return absl::StrFormat("  %-10s %s\n", name, value);
}

std::string Number(double value) { return absl::StrFormat("%.6g", value); }

std::string ToleranceText(const v1::Tolerance& tolerance) {
  if (tolerance.mode() == v1::TOLERANCE_MODE_ABSOLUTE_RELATIVE) {
    return absl::StrFormat("atol %g, rtol %g", tolerance.atol(), tolerance.rtol());
  }
  return "scaled tolerance";
}

std::string IndexText(const v1::Mismatch& mismatch) {
  return absl::StrCat("[", absl::StrJoin(mismatch.index(), ", "), "]");
}

// A profiler's time of the kernel, where a row of calls takes longer (docs/timing.md).
void AppendAlone(const v1::TimingReport& timing, std::string* out) {
  constexpr double kTold = 0.01;  // of a call in a row
  double call = 0;                // of the first baseline that has figures
  for (const v1::BaselineTiming& baseline : timing.baselines()) {
    if (call <= 0 && baseline.unavailable().empty()) call = baseline.candidate_median_seconds();
  }
  if (timing.alone_seconds() <= 0 || timing.alone_seconds() >= (1 - kTold) * call) return;
  absl::StrAppend(out, Field("alone", absl::StrCat(FormatSeconds(timing.alone_seconds()), " by itself, of ",
                                                   FormatSeconds(call), " in a row")));
}

void AppendTiming(const v1::TimingReport& timing, std::string* out) {
  for (const v1::BaselineTiming& baseline : timing.baselines()) {
    const std::string name = BaselineName(baseline.baseline());
    if (!baseline.unavailable().empty()) {
      absl::StrAppend(out, Field("against", absl::StrCat(name, ": not measured: ", OneLine(baseline.unavailable()))));
      continue;
    }
    absl::StrAppend(
        out, Field("against",
                   absl::StrCat(name, ": ",
                                FormatSpeedup(baseline.speedup(), baseline.speedup_low(), baseline.speedup_high()),
                                " (95 % interval), medians ", FormatSeconds(baseline.reference_median_seconds()),
                                " -> ", FormatSeconds(baseline.candidate_median_seconds()), ", ", PairsText(baseline),
                                baseline.comparison() == v1::COMPARISON_UNSPECIFIED
                                    ? ""
                                    : absl::StrCat(": ", ComparisonName(baseline.comparison()), " at a resolution of ",
                                                   FormatPercent(baseline.resolution())))));
  }
  AppendAlone(timing, out);
  if (timing.discarded() > 0) {
    std::string reasons = absl::StrJoin(timing.discards(), ", ", [](std::string* s, const v1::DiscardCount& discard) {
      absl::StrAppend(s, discard.count(), " ", OneLine(discard.reason()));
    });
    absl::StrAppend(out, Field("discarded", absl::StrCat(timing.discarded(), " samples",
                                                         reasons.empty() ? "" : absl::StrCat(": ", reasons))));
  }
  if (!timing.method().empty()) absl::StrAppend(out, Field("method", OneLine(timing.method())));
  if (const std::string clocks = ClocksLine(timing); !clocks.empty()) absl::StrAppend(out, Field("clocks", clocks));
  if (const std::string reruns = RerunsLine(timing); !reruns.empty()) absl::StrAppend(out, Field("reruns", reruns));
  const std::string others = OthersLine(timing.device_state());
  if (!others.empty()) absl::StrAppend(out, Field("others", others));
}

std::string ParametersText(const v1::Combination& one) {
  return absl::StrJoin(one.parameters(), " ", [](std::string* s, const v1::Parameter& parameter) {
    absl::StrAppend(s, OneLine(parameter.name()), "=", OneLine(parameter.value()));
  });
}

// What was tried of the parameters that a candidate declares; reasons are cut, --json has the whole.
void AppendCombinations(const v1::EvaluationResult& result, std::string* out) {
  std::vector<std::vector<std::string>> rows;
  for (const v1::Combination& one : result.combinations()) {
    if (one.chosen()) {
      absl::StrAppend(out, Field("parameters", absl::StrCat(ParametersText(one), ", chosen of ",
                                                            result.combinations_size(), " combinations")));
    }
    rows.push_back({absl::StrCat(one.chosen() ? "* " : "  ", ParametersText(one)), VerdictName(one.verdict()),
                    one.speedup() > 0 ? FormatSpeedup(one.speedup(), one.speedup_low(), one.speedup_high()) : "",
                    one.seconds() > 0 ? FormatSeconds(one.seconds()) : "",
                    one.verdict() == v1::VERDICT_CORRECT ? "" : Fit(OneLine(one.reason()), 100)});
  }
  if (!rows.empty()) absl::StrAppend(out, Table({"  PARAMETERS", "VERDICT", "SPEEDUP", "TIME", "REASON"}, rows));
}

// How near to what the device can do at all.
void AppendFloor(const v1::FloorReport& floor, std::string* out) {
  if (floor.seconds() > 0) {
    absl::StrAppend(
        out, Field("floor", absl::StrFormat("%s, %.0f %% of it reached (%s-bound: %s)", FormatSeconds(floor.seconds()),
                                            100 * floor.fraction(), floor.bound(), OneLine(floor.source()))));
  } else if (!floor.source().empty()) {
    absl::StrAppend(out, Field("floor", absl::StrCat("unknown: ", OneLine(floor.source()))));
  }
}

void AppendCorrectness(const v1::CorrectnessReport& report, std::string* out) {
  if (report.trials() == 0) return;
  std::string line = absl::StrCat(report.trials_passed(), " of ", report.trials(), " input draws passed");
  if (report.first_failing_trial() > 0)
    absl::StrAppend(&line, ", first failure in draw ", report.first_failing_trial());
  absl::StrAppend(&line, "; ", report.rule().empty() ? ToleranceText(report.tolerance()) : OneLine(report.rule()));
  absl::StrAppend(out, Field("checked", line));
  if (report.inputs_modified()) absl::StrAppend(out, Field("inputs", "the candidate changed its inputs"));
  for (const v1::OutputComparison& output : report.outputs()) {
    if (!output.got_type().empty()) {
      absl::StrAppend(
          out, Field("output", absl::StrCat(output.index(), OneLine(output.path()), ": expected ",
                                            OneLine(output.expected_type()), ", got ", OneLine(output.got_type()))));
    }
    // Of another type or shape, all elements differ and none is the worst.
    if (output.mismatched() > 0 && output.got_type().empty()) {
      absl::StrAppend(
          out, Field("output", absl::StrCat(output.index(), OneLine(output.path()), ": ", output.mismatched(), " of ",
                                            output.elements(), " elements differ")));
      absl::StrAppend(
          out, Field("worst",
                     absl::StrCat("at ", IndexText(output.worst()), ": expected ", Number(output.worst().expected()),
                                  ", got ", Number(output.worst().got()), ", error ", Number(output.worst().error()),
                                  ", allowed ", Number(output.worst().allowed()))));
    } else if (report.first_failing_trial() == 0 && output.elements() > 0) {
      absl::StrAppend(out, Field("error", absl::StrCat("output ", output.index(), OneLine(output.path()), ": at most ",
                                                       Number(output.max_abs_error()), " absolute, ",
                                                       Number(output.scaled_error()), " of the output's magnitude")));
    }
  }
  if (!report.also_passes().empty()) {
    absl::StrAppend(out,
                    Field("passes", absl::StrJoin(report.also_passes(), ", ", [](std::string* s, const std::string& r) {
                            absl::StrAppend(s, OneLine(r));
                          })));
  }
}

void AppendFault(const v1::FaultReport& fault, absl::string_view see_all, std::string* out) {
  std::vector<std::string> parts;
  if (!fault.stage().empty()) parts.push_back(absl::StrCat("stage ", OneLine(fault.stage())));
  if (fault.signal() != 0) {
    parts.push_back(
        absl::StrCat("signal ", fault.signal(), fault.signal_name().empty() ? "" : " ", OneLine(fault.signal_name())));
  }
  if (fault.exit_code() != 0) parts.push_back(absl::StrCat("exit code ", fault.exit_code()));
  if (!fault.cuda_error().empty()) parts.push_back(OneLine(fault.cuda_error()));
  if (!fault.limit().empty()) {
    const bool bytes = absl::EndsWith(fault.limit(), "_bytes");
    const bool seconds = absl::EndsWith(fault.limit(), "_seconds");
    const auto amount = [&](double value) {
      if (bytes) return FormatBytes(static_cast<int64_t>(value));
      if (seconds) return FormatSeconds(value);
      return Number(value);
    };
    parts.push_back(
        absl::StrCat("limit ", OneLine(fault.limit()), " = ", amount(fault.limit_set()),
                     fault.limit_reached() > 0 ? absl::StrCat(", reached ", amount(fault.limit_reached())) : "",
                     " (raise it with --limit ", OneLine(fault.limit()), "=...)"));
  }
  if (!parts.empty()) absl::StrAppend(out, Field("fault", absl::StrJoin(parts, ", ")));
  if (!fault.message().empty())
    absl::StrAppend(out, Field("message", ""), Excerpt(fault.message(), kStderrLines, "    ", see_all));
  if (!fault.evidence().empty())
    absl::StrAppend(out, Field("evidence", ""), Excerpt(fault.evidence(), kLogLines, "    ", see_all));
  if (!fault.stderr_tail().empty())
    absl::StrAppend(out, Field("stderr", ""), Excerpt(fault.stderr_tail(), kStderrLines, "    ", see_all));
}

void AppendBuild(const v1::BuildReport& build, size_t log_lines, absl::string_view see_all, std::string* out) {
  std::string line = build.ok() ? "ok" : "failed";
  if (build.cached()) {
    absl::StrAppend(&line, ", from the cache");
  } else if (build.seconds() > 0) {
    absl::StrAppend(&line, " in ", FormatSeconds(build.seconds()));
  }
  if (!build.command().empty()) absl::StrAppend(&line, ": ", OneLine(build.command()));
  if (build.ok() || !build.command().empty() || !build.log().empty()) absl::StrAppend(out, Field("build", line));
  for (const v1::KernelResources& kernel : build.kernels()) {
    absl::StrAppend(out, Field("", absl::StrCat(OneLine(kernel.name()), ": ", kernel.registers(), " registers, ",
                                                FormatBytes(kernel.spill_store_bytes() + kernel.spill_load_bytes()),
                                                " spilled, ", FormatBytes(kernel.shared_bytes()), " shared")));
  }
  if (!build.log().empty() && log_lines > 0) {
    absl::StrAppend(out, Field("compiler", ""), Excerpt(build.log(), log_lines, "    ", see_all));
    if (build.log_truncated()) absl::StrAppend(out, "    (the compiler said more than is kept)\n");
  }
}

std::string JobKind(const v1::JobSpec& spec) {
  if (spec.has_search()) return "search";
  if (spec.has_check_problem()) return "check";
  if (spec.has_calibrate()) return "calibrate";
  return spec.eval().has_rival() ? "compare" : "eval";
}

std::string LineageLine(const v1::TreeNode& node) {
  if (node.has_idea()) return absl::StrCat(node.idea().id(), "  idea: ", OneLine(node.idea().title()));
  return absl::StrCat(node.kernel().id(), "  kernel: ", KernelVerdictLine(node.kernel()));
}

}  // namespace

std::string RenderWork(const v1::WorkReport& work, bool all) {
  const bool asked = work.policy() != v1::WORK_POLICY_UNSPECIFIED && work.policy() != v1::WORK_POLICY_ANYTHING;
  // Without a policy nothing was decided: who looks at one kernel sees what was loaded.
  if (!asked && (!all || work.libraries().empty())) return "";
  std::vector<std::string> parts;
  if (asked && work.own_share() > 0) parts.push_back(absl::StrFormat("%.0f %% its own", 100 * work.own_share()));
  if (!work.libraries().empty()) {
    constexpr int kShown = 4;
    const int shown = all ? work.libraries_size() : std::min(kShown, work.libraries_size());
    std::vector<std::string> names;
    for (int i = 0; i < shown; ++i) names.push_back(OneLine(work.libraries(i)));
    const int more = work.libraries_size() - shown;
    parts.push_back(
        absl::StrCat("loaded ", absl::StrJoin(names, ", "), more > 0 ? absl::StrCat(" and ", more, " more") : ""));
  }
  if (!work.how().empty()) parts.push_back(absl::StrCat("seen by ", OneLine(work.how())));
  std::string out =
      Field("work", absl::StrCat(WorkPolicyName(work.policy()), parts.empty() ? "" : ": ", absl::StrJoin(parts, "; ")));
  constexpr int kKernels = 3;
  for (int i = 0; i < work.kernels_size() && (all || i < kKernels); ++i) {
    const v1::KernelProfile& kernel = work.kernels(i);
    absl::StrAppend(&out, Field("", absl::StrFormat("%3.0f %% %s %s", 100 * kernel.share(),
                                                    kernel.own() ? "own  " : "other", OneLine(kernel.name()))));
  }
  return out;
}

std::string KernelVerdictLine(const v1::KernelNode& kernel) {
  std::string line = VerdictName(kernel.result().verdict());
  if (const v1::BaselineTiming* timing = RankingTiming(kernel.result())) {
    absl::StrAppend(&line, " ", FormatSpeedup(timing->speedup(), timing->speedup_low(), timing->speedup_high()), " vs ",
                    BaselineName(timing->baseline()));
  }
  return line;
}

std::string RenderEvaluation(const v1::KernelNode& kernel, const Style& style) {
  const v1::EvaluationResult& result = kernel.result();
  const std::string see_all = absl::StrCat("grove show ", kernel.id());
  const std::string name = kernel.candidate().name().empty() ? kernel.id() : OneLine(kernel.candidate().name());
  std::string out = absl::StrCat(style.Bold(name), "  ", style.Verdict(result.verdict()));
  if (const v1::BaselineTiming* timing = RankingTiming(result)) {
    absl::StrAppend(&out, "  ",
                    style.Bold(FormatSpeedup(timing->speedup(), timing->speedup_low(), timing->speedup_high())), " vs ",
                    BaselineName(timing->baseline()));
  }
  absl::StrAppend(&out, "  ", style.Dim(kernel.id()), "\n");
  if (result.verdict() == v1::VERDICT_UNSPECIFIED) {
    absl::StrAppend(&out, Field("reason", "no verdict: the job ended before this candidate was judged"));
    return out;
  }
  if (!result.reason().empty() && result.verdict() != v1::VERDICT_CORRECT) {
    absl::StrAppend(&out, Field("reason", OneLine(result.reason())));
  }
  AppendCombinations(result, &out);
  AppendTiming(result.timing(), &out);
  AppendFloor(result.floor(), &out);
  absl::StrAppend(&out, RenderProfile(result.profile(), /*all=*/false));
  AppendCorrectness(result.correctness(), &out);
  absl::StrAppend(&out, RenderWork(result.work(), /*all=*/false));
  AppendFault(result.fault(), see_all, &out);
  if (result.reused()) {
    absl::StrAppend(&out, Field("reused", "the result of an equal evaluation: nothing was run or measured this time"));
  }
  const bool build_matters = result.verdict() == v1::VERDICT_BUILD_FAILED;
  if (build_matters || result.build().ok()) AppendBuild(result.build(), build_matters ? kLogLines : 0, see_all, &out);
  if (result.has_device()) absl::StrAppend(&out, Field("device", DeviceLine(result.device())));
  return out;
}

std::string RenderKernelNode(const v1::KernelNode& kernel, absl::Span<const v1::TreeNode> lineage, const Style& style) {
  const v1::EvaluationResult& result = kernel.result();
  std::string out =
      absl::StrCat(style.Bold(absl::StrCat("kernel ", kernel.id())), "  ", style.Verdict(result.verdict()));
  if (const v1::BaselineTiming* timing = RankingTiming(result)) {
    absl::StrAppend(&out, "  ", FormatSpeedup(timing->speedup(), timing->speedup_low(), timing->speedup_high()), " vs ",
                    BaselineName(timing->baseline()));
  }
  absl::StrAppend(&out, "\n");
  absl::StrAppend(&out, Field("state", NodeStateName(kernel.state())));
  if (!result.reason().empty()) absl::StrAppend(&out, Field("reason", OneLine(result.reason())));
  if (!kernel.idea().empty()) {
    absl::StrAppend(&out, Field("round", absl::StrCat(kernel.round() + 1, ", variant ", kernel.variant() + 1)));
  }
  if (!kernel.repaired_from().empty()) absl::StrAppend(&out, Field("repairs", kernel.repaired_from()));
  if (!kernel.duplicate_of().empty()) {
    absl::StrAppend(
        &out, Field("duplicate", absl::StrCat("same source as ", kernel.duplicate_of(), ", whose result it shares")));
  }
  if (!kernel.bank_origin().empty()) absl::StrAppend(&out, Field("bank", OneLine(kernel.bank_origin())));
  if (kernel.survivor()) {
    absl::StrAppend(&out, Field("kept", kernel.explored() ? "as a parent, to explore" : "as a parent"));
  }
  if (kernel.measured_size() > 1) {
    absl::StrAppend(&out, Field("measured", absl::StrCat(absl::StrJoin(kernel.measured(), ", then ",
                                                                       [](std::string* s, const v1::BaselineTiming& t) {
                                                                         absl::StrAppend(
                                                                             s,
                                                                             FormatSpeedup(t.speedup(), t.speedup_low(),
                                                                                           t.speedup_high()));
                                                                       }),
                                                         ": the lower counts")));
  }
  if (!kernel.notes().empty()) absl::StrAppend(&out, Field("notes", OneLine(kernel.notes())));
  absl::StrAppend(&out, Field("lineage", lineage.empty() ? "directly from the reference" : ""));
  for (const v1::TreeNode& node : lineage) absl::StrAppend(&out, "    ", LineageLine(node), "\n");
  if (!lineage.empty()) absl::StrAppend(&out, "    the reference\n");
  AppendCombinations(result, &out);
  AppendTiming(result.timing(), &out);
  AppendFloor(result.floor(), &out);
  absl::StrAppend(&out, RenderProfile(result.profile(), /*all=*/true));
  AppendCorrectness(result.correctness(), &out);
  absl::StrAppend(&out, RenderWork(result.work(), /*all=*/true));
  AppendFault(result.fault(), "", &out);
  AppendBuild(result.build(), 100000, "", &out);
  if (result.has_device()) absl::StrAppend(&out, Field("device", DeviceLine(result.device())));
  if (!result.stages().empty()) {
    absl::StrAppend(&out,
                    Field("stages", absl::StrJoin(result.stages(), ", ", [](std::string* s, const v1::StageTime& t) {
                            absl::StrAppend(s, OneLine(t.stage()), " ", FormatSeconds(t.seconds()));
                          })));
  }
  if (result.attempt() > 0) {
    absl::StrAppend(&out, Field("worker", absl::StrCat(OneLine(result.worker()), ", attempt ", result.attempt())));
  }
  for (const v1::BaselineTiming& timing : result.timing().baselines()) {
    const int count = std::min(timing.reference_seconds_size(), timing.candidate_seconds_size());
    if (count == 0) continue;
    absl::StrAppend(&out,
                    Field("samples", absl::StrCat(count, " pairs, ", BaselineName(timing.baseline()), " -> candidate",
                                                  count > kSamplesShown
                                                      ? absl::StrCat("; the first ", kSamplesShown, " (--json has all)")
                                                      : "")));
    for (int i = 0; i < std::min(count, kSamplesShown); ++i) {
      absl::StrAppend(&out, "    ", FormatSeconds(timing.reference_seconds(i)), " -> ",
                      FormatSeconds(timing.candidate_seconds(i)),
                      i < timing.sample_states_size() ? SampleStateText(timing.sample_states(i)) : "", "\n");
    }
  }
  if (!kernel.candidate().build_flags().empty()) {
    absl::StrAppend(&out, Field("flags", OneLine(absl::StrJoin(kernel.candidate().build_flags(), " "))));
  }
  if (!kernel.candidate().source().empty()) {
    absl::StrAppend(&out, Field("source", OneLine(kernel.candidate().name())), "\n",
                    Printable(kernel.candidate().source()));
    if (!absl::EndsWith(kernel.candidate().source(), "\n")) absl::StrAppend(&out, "\n");
  }
  return out;
}

std::string RenderIdeaNode(const v1::IdeaNode& idea, absl::Span<const v1::TreeNode> lineage,
                           absl::Span<const v1::KernelNode> kernels, const Style& style) {
  std::string out = absl::StrCat(style.Bold(absl::StrCat("idea ", idea.id())), "  ", OneLine(idea.title()), "\n");
  absl::StrAppend(&out, Field("state", NodeStateName(idea.state())), Field("round", absl::StrCat(idea.round() + 1)));
  if (!idea.category().empty()) absl::StrAppend(&out, Field("category", OneLine(idea.category())));
  if (idea.predicted_speedup() > 0)
    absl::StrAppend(&out, Field("predicted", absl::StrFormat("%.3gx over its parent", idea.predicted_speedup())));
  if (idea.credit() > 0)
    absl::StrAppend(&out, Field("credit", absl::StrFormat("%.3gx over its parent", idea.credit())));
  absl::StrAppend(&out, Field("lineage", lineage.empty() ? "directly from the reference" : ""));
  for (const v1::TreeNode& node : lineage) absl::StrAppend(&out, "    ", LineageLine(node), "\n");
  if (!kernels.empty()) absl::StrAppend(&out, Field("kernels", ""));
  for (const v1::KernelNode& kernel : kernels) {
    absl::StrAppend(&out, "    ", kernel.id(), "  ", KernelVerdictLine(kernel), "\n");
  }
  if (!idea.description().empty()) absl::StrAppend(&out, "\n", Printable(idea.description()), "\n");
  return out;
}

std::string RenderJobs(absl::Span<const v1::Job> jobs, int64_t now_unix_nanos) {
  std::vector<std::vector<std::string>> rows;
  for (const v1::Job& job : jobs) {
    rows.push_back({job.id(), JobKind(job.spec()), OneLine(job.spec().name()), JobStateName(job.state()),
                    absl::StrCat(job.counts().finished(), "/", job.counts().kernels()),
                    absl::StrCat(job.counts().correct()),
                    FormatSpeedup(job.best_speedup(), job.best_speedup_low(), job.best_speedup_high()),
                    FormatAge(job.created_unix_nanos(), now_unix_nanos)});
  }
  return Table({"JOB", "KIND", "NAME", "STATE", "JUDGED", "CORRECT", "BEST", "CREATED"}, rows);
}

std::string RenderJob(const v1::Job& job, int64_t now_unix_nanos, const Style& style) {
  const bool search = job.spec().has_search();
  std::string out = absl::StrCat(style.Bold(job.id()), "  ", JobKind(job.spec()), " of ", OneLine(job.spec().name()),
                                 "  ", JobStateName(job.state()), "\n");
  if (!job.state_reason().empty()) absl::StrAppend(&out, Field("reason", OneLine(job.state_reason())));
  const int64_t end = job.finished_unix_nanos() != 0 ? job.finished_unix_nanos() : now_unix_nanos;
  absl::StrAppend(&out, Field("created", FormatTime(job.created_unix_nanos())));
  absl::StrAppend(&out, Field(job.finished_unix_nanos() != 0 ? "took" : "running",
                              FormatClock(static_cast<double>(end - job.created_unix_nanos()) * 1e-9)));
  const v1::JobCounts& counts = job.counts();
  if (search) absl::StrAppend(&out, Field("ideas", absl::StrCat(counts.ideas())));
  absl::StrAppend(&out, Field("kernels", absl::StrCat(counts.kernels(), ": ", counts.queued(), " queued, ",
                                                      counts.running(), " running, ", counts.finished(), " judged")));
  std::map<v1::Verdict, int> verdicts;
  for (const auto& [verdict, count] : counts.verdicts()) verdicts[static_cast<v1::Verdict>(verdict)] = count;
  if (!verdicts.empty()) absl::StrAppend(&out, Field("verdicts", RenderVerdictCounts(verdicts)));
  if (counts.model_calls() > 0) {
    absl::StrAppend(&out, Field("model", absl::StrCat(counts.model_calls(), " calls, ", counts.prompt_tokens(), " + ",
                                                      counts.completion_tokens(), " tokens")));
  }
  if (!job.best_node().empty()) {
    absl::StrAppend(
        &out,
        Field("best", absl::StrCat(FormatSpeedup(job.best_speedup(), job.best_speedup_low(), job.best_speedup_high()),
                                   "  ", job.best_node())));
  }
  return out;
}

std::string RenderWorkers(absl::Span<const v1::WorkerStatus> workers) {
  std::vector<std::vector<std::string>> rows;
  for (const v1::WorkerStatus& worker : workers) {
    std::string state = !worker.connected()           ? "disconnected"
                        : worker.draining()           ? "draining"
                        : worker.slot_state().empty() ? "idle"
                                                      : OneLine(worker.slot_state());
    rows.push_back({OneLine(worker.worker_id()), OneLine(worker.name()), DeviceLine(worker.device()), state,
                    absl::StrCat(worker.running_size(), "/", worker.capacity()), absl::StrCat(worker.evaluations()),
                    worker.device().calibration().resolution() > 0
                        ? FormatPercent(worker.device().calibration().resolution())
                        : "uncalibrated",
                    absl::StrFormat("%.1f s", worker.last_heartbeat_seconds()), OneLine(worker.version()),
                    OneLine(absl::StrJoin(worker.sandbox_layers(), " "))});
  }
  std::string out = Table(
      {"WORKER", "NAME", "DEVICE", "STATE", "LEASES", "DONE", "RESOLUTION", "HEARTBEAT", "VERSION", "SANDBOX"}, rows);
  // Too long for a column, and not to be overlooked.
  for (const v1::WorkerStatus& worker : workers) {
    if (!worker.health().empty())
      absl::StrAppend(&out, OneLine(worker.worker_id()), ": ", OneLine(worker.health()), "\n");
  }
  return out;
}

std::string RenderBank(absl::Span<const v1::BankEntry> entries, int64_t now_unix_nanos) {
  std::vector<std::vector<std::string>> rows;
  for (const v1::BankEntry& entry : entries) {
    rows.push_back({entry.id(), OneLine(entry.operation()), DeviceKindName(entry.device()), OneLine(entry.arch()),
                    FormatSpeedup(entry.speedup(), entry.speedup_low(), entry.speedup_high()),
                    OneLine(entry.problem_name()), entry.origin_node().empty() ? "by hand" : entry.origin_node(),
                    FormatAge(entry.added_unix_nanos(), now_unix_nanos)});
  }
  return Table({"ENTRY", "OPERATION", "DEVICE", "ARCH", "SPEEDUP", "PROBLEM", "ORIGIN", "ADDED"}, rows);
}

std::string RenderBankEntry(const v1::BankEntry& entry, const Style& style) {
  std::string out =
      absl::StrCat(style.Bold(entry.id()), "  ", OneLine(entry.operation()), " on ", DeviceKindName(entry.device()),
                   entry.arch().empty() ? "" : " ", OneLine(entry.arch()), "\n");
  if (entry.speedup() > 0) {
    absl::StrAppend(&out, Field("speedup", FormatSpeedup(entry.speedup(), entry.speedup_low(), entry.speedup_high())));
  }
  if (!entry.problem_name().empty()) absl::StrAppend(&out, Field("problem", OneLine(entry.problem_name())));
  absl::StrAppend(&out, Field("origin", entry.origin_node().empty() ? "added by hand" : entry.origin_node()));
  absl::StrAppend(&out, Field("added", FormatTime(entry.added_unix_nanos())));
  if (!entry.recipe().empty()) absl::StrAppend(&out, Field("recipe", OneLine(entry.recipe())));
  if (!entry.note().empty()) absl::StrAppend(&out, Field("note", OneLine(entry.note())));
  if (!entry.candidate().source().empty()) {
    absl::StrAppend(&out, Field("source", OneLine(entry.candidate().name())), "\n",
                    Printable(entry.candidate().source()));
    if (!absl::EndsWith(entry.candidate().source(), "\n")) absl::StrAppend(&out, "\n");
  }
  return out;
}

std::string RenderVerdictCounts(const std::map<v1::Verdict, int>& counts) {
  std::vector<std::string> parts;
  for (const auto& [verdict, count] : counts) {
    if (count == 0) continue;
    parts.push_back(
        absl::StrCat(count, " ", absl::StrReplaceAll(absl::AsciiStrToLower(VerdictName(verdict)), {{"_", " "}})));
  }
  return absl::StrJoin(parts, ", ");
}

std::string RenderSearchEnd(const v1::Job& job, const v1::KernelNode* best, const Style& style) {
  std::map<v1::Verdict, int> verdicts;
  for (const auto& [verdict, count] : job.counts().verdicts()) verdicts[static_cast<v1::Verdict>(verdict)] = count;
  std::string out = absl::StrCat(style.Bold(absl::StrCat("search ", job.id())), "  ", JobStateName(job.state()), "  ",
                                 job.counts().ideas(), " ideas, ", job.counts().kernels(), " kernels",
                                 verdicts.empty() ? "" : absl::StrCat(": ", RenderVerdictCounts(verdicts)), "\n");
  if (!job.state_reason().empty()) absl::StrAppend(&out, Field("reason", OneLine(job.state_reason())));
  if (best == nullptr) {
    absl::StrAppend(&out, Field("best", "no kernel was correct"));
    return out;
  }
  const v1::BaselineTiming* timing = RankingTiming(best->result());
  absl::StrAppend(
      &out,
      Field("best",
            absl::StrCat(style.Bold(FormatSpeedup(job.best_speedup(), job.best_speedup_low(), job.best_speedup_high())),
                         " (95 % interval)",
                         timing != nullptr ? absl::StrCat(" vs ", BaselineName(timing->baseline())) : "", "  ",
                         best->id(), job.best_confirmed() ? ", measured twice: the lower counts" : ", measured once")));
  AppendCombinations(best->result(), &out);
  AppendTiming(best->result().timing(), &out);
  absl::StrAppend(&out, RenderProfile(best->result().profile(), /*all=*/false));
  if (best->result().has_device()) absl::StrAppend(&out, Field("device", DeviceLine(best->result().device())));
  return out;
}

}  // namespace grove::cli
