#include "worker/judge/timing_report.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "worker/judge/statistics.h"
#include "worker/judge/verdict.h"

namespace grove::judge {
namespace {

using nlohmann::json;

constexpr std::uint64_t kBootstrapSeed = 20250528;
constexpr double kQuiet = 0.05;     // share of a run on a CPU that may be spent waiting for a processor
constexpr double kNormal95 = 1.96;  // standard errors to either side of an estimate hold the truth in 95 %

// What is taken off runs, and what runs take with it, for who wants to know why nothing was left.
std::string AskingAndRuns(const TimingFacts& facts, const Series& entry) {
  const auto microseconds = [](double seconds) { return std::to_string(std::llround(1e6 * seconds)) + " us"; };
  const auto run = [&](const std::vector<double>& runs) { return microseconds(runs.empty() ? 0 : Median(runs)); };
  return ", asking for the candidate's takes " + microseconds(facts.asking) + " of " + run(entry.candidate) +
         " and the other's " + microseconds(facts.reckoning.EmptyOf(entry)) + " of " + run(entry.other);
}

}  // namespace

json ReportTiming(const TimingFacts& facts) {
  const CandidateRuns& runs = facts.runs;
  const EvaluationSettings& settings = facts.settings;
  std::map<std::string, int> discards = facts.discards;
  const double calls = static_cast<double>(runs.calls);
  json baselines = json::array();
  double busy = 0;
  for (const Series& entry : facts.series) {
    json item{{"baseline", entry.baseline}};
    if (!entry.unavailable.empty()) {
      item["unavailable"] = entry.unavailable;
      baselines.push_back(item);
      continue;
    }
    const CallTimes times = facts.reckoning.Calls(entry, facts.asking);
    const std::vector<double>&other = times.other, &candidate = times.candidate;
    if (times.unresolved > 0) discards["shorter than the judge's clock resolves"] += times.unresolved;
    if (static_cast<int>(other.size()) < std::min(settings.min_samples, settings.max_samples) &&
        (&entry == &facts.series[0] || other.empty())) {
      int discarded = 0;
      for (const auto& [reason, count] : discards) discarded += count;
      throw Verdict{"VERDICT_UNMEASURABLE",
                    "only " + std::to_string(other.size()) + " valid pairs of samples, and " +
                        std::to_string(settings.min_samples) + " are needed (" + std::to_string(discarded) +
                        " discarded" + (discards.empty() ? "" : ": " + discards.begin()->first) +
                        (times.unresolved > 0 ? AskingAndRuns(facts, entry) : "") +
                        "); allow more time or fewer samples",
                    {}};
    }
    const RatioEstimate ratio = EstimateRatio(other, candidate, kBlock, kBootstrapSeed);
    item["reference_median_seconds"] = Median(other);
    item["candidate_median_seconds"] = Median(candidate);
    item["speedup"] = ratio.speedup;
    // What other programs took from one side, or from both, the pairs cannot show: they lean all in one way.
    const double waited = entry.waited.empty() ? 0 : Median(entry.waited);
    const double unsure =
        (waited > kQuiet ? 1 + waited : 1) * std::exp(kNormal95 * facts.reckoning.AskingShare(entry, facts.asking));
    if (waited > kQuiet) busy = std::max(busy, waited);
    item["speedup_low"] = ratio.low / unsure;
    item["speedup_high"] = ratio.high * unsure;
    item["samples"] = other.size();
    if (settings.keep_samples) {
      item["reference_seconds"] = other;
      item["candidate_seconds"] = candidate;
      if (!entry.states.empty()) {
        json& states = item["sample_states"] = json::array();
        for (std::size_t pair : times.pairs) {
          if (pair < entry.states.size()) states.push_back(entry.states[pair]);
        }
      }
    }
    baselines.push_back(item);
  }
  int discarded = 0;
  json reasons = json::array();
  for (const auto& [reason, count] : discards) {
    discarded += count;
    reasons.push_back({{"reason", reason}, {"count", count}});
  }
  const bool warm = settings.Warm();
  std::string method = "duet, runs of " + std::to_string(runs.calls) + (runs.calls == 1 ? " call" : " calls") +
                       " on the judge's clock, " + (warm ? "warm" : "cold") + (facts.cuda ? " L2" : " cache") +
                       (facts.held ? ", the candidate held between them" : "") +
                       (facts.copies_late ? ", its results copied by itself behind the clock" : "") +
                       (facts.host_paced ? ", both sides on one processor of the host in turns" : "") +
                       (facts.repeated ? ", on values some of which came more than once" : "") +
                       (facts.known_draws ? ", on values that are not all of the judge's choice (an input is the same "
                                            "on every call, or not drawn by torch's own generator)"
                                          : "") +
                       (facts.no_time_for_steps ? ", no calls given one at a time for want of time" : "");
  if (runs.apart > 0) {
    char text[160];
    std::snprintf(text, sizeof text, ", a call by itself taking %.3g s more than one of them, which counts for each",
                  runs.apart);
    method += text;
  }
  for (const Series& entry : facts.series) {
    if (entry.apart <= 0) continue;
    char text[160];
    std::snprintf(text, sizeof text, ", a call of the other candidate's by itself taking %.3g s more than one of a run",
                  entry.apart);
    method += text;
  }
  if (busy > 0) {
    char text[120];
    std::snprintf(text, sizeof text, ", the machine busy: the reference was without a processor %.0f %% of its time",
                  100 * busy);
    method += text;
  }
  double slope = (Median(runs.runs) + Median(runs.runs_late) - facts.asking) / calls;
  if (runs.calls > 1 && !runs.shorts.empty()) {
    slope = (Median(runs.runs) + Median(runs.runs_late) - Median(runs.shorts) - Median(runs.shorts_late)) /
            static_cast<double>(runs.calls - runs.calls / 2);
  }
  return {{"baselines", baselines},
          {"discarded", discarded},
          {"discards", reasons},
          {"method", method},
          {"slope_seconds", slope},
          {"slope_k", runs.calls},
          {"claimed_median_seconds", runs.claims.empty() ? 0.0 : Median(runs.claims) / calls},
          {"flush_bytes", facts.flush_bytes},
          {"buffer_sets", facts.slots},
          {"sampling_seconds", facts.sampling},
          {"outputs_verified", facts.outputs_verified},
          {"outputs_timed", facts.outputs_timed},
          {"calls_per_sample", runs.calls},
          {"reruns", facts.reruns},
          {"cache", warm ? "CACHE_POLICY_WARM" : "CACHE_POLICY_COLD"}};
}

std::string TimingReason(const json& report, int trials) {
  char text[200];
  const json& first = report["baselines"][0];
  if (first.contains("unavailable")) return "correct on " + std::to_string(trials) + " draws";
  const std::string against = first["baseline"] == "BASELINE_COMPILE" ? "torch.compile"
                              : first["baseline"] == "BASELINE_RIVAL" ? "the other candidate"
                                                                      : "eager";
  std::snprintf(text, sizeof text, "%.3gx [%.3g, %.3g] against %s, %d samples", first["speedup"].get<double>(),
                first["speedup_low"].get<double>(), first["speedup_high"].get<double>(), against.c_str(),
                first["samples"].get<int>());
  return text;
}

}  // namespace grove::judge
