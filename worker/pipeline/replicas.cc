#include "worker/pipeline/replicas.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/measure/comparison.h"
#include "common/measure/replicas.h"

namespace grove::worker {
namespace {

v1::EvaluateWork WorkOf(const v1::EvaluateWork& work, int replica) {
  v1::EvaluateWork one = work;
  if (replica == 0) return one;
  // One draw of every shape on the problem's own values: whether these processes compute what the first ones were seen
  // to compute. Outputs of timed runs are compared as always, and a work policy holds in every process.
  v1::EvaluationOptions& options = *one.mutable_options();
  options.set_trials(1);
  options.clear_distributions();
  options.set_only_given_inputs(true);
  options.set_profile(false);
  return one;
}

std::string ReasonOf(const v1::BaselineTiming& timing) {
  const char* against = timing.baseline() == v1::BASELINE_COMPILE ? "torch.compile"
                        : timing.baseline() == v1::BASELINE_RIVAL ? "the other candidate"
                                                                  : "eager";
  return absl::StrFormat("%.3gx [%.3g, %.3g] against %s, %d samples in %d pairs of processes", timing.speedup(),
                         timing.speedup_low(), timing.speedup_high(), against, timing.samples(), timing.replicas());
}

// Each stage once, with the seconds of all pairs.
void AddStages(const v1::EvaluationResult& one, v1::EvaluationResult* combined) {
  for (const v1::StageTime& time : one.stages()) {
    auto& stages = *combined->mutable_stages();
    const auto same = std::find_if(stages.begin(), stages.end(),
                                   [&](const v1::StageTime& other) { return other.stage() == time.stage(); });
    if (same == stages.end()) {
      *stages.Add() = time;
    } else {
      same->set_seconds(same->seconds() + time.seconds());
    }
  }
}

v1::EvaluationResult Combined(std::vector<v1::EvaluationResult> results) {
  std::vector<v1::TimingReport> timings;
  for (const v1::EvaluationResult& result : results) timings.push_back(result.timing());
  v1::EvaluationResult combined = results[0];
  combined.clear_stages();
  for (const v1::EvaluationResult& result : results) AddStages(result, &combined);
  *combined.mutable_timing() = measure::CombineReplicas(timings);
  *combined.mutable_rival() = results.back().rival();
  if (results.size() == 1) return combined;
  const v1::BaselineTiming* ranking = measure::Ranking(combined);
  if (ranking == nullptr) {
    combined.set_reason(absl::StrCat("correct on ", combined.correctness().trials(), " draws"));
    if (combined.has_floor()) combined.mutable_floor()->clear_fraction();
    return combined;
  }
  combined.set_reason(ReasonOf(*ranking));
  if (combined.has_floor()) {
    combined.mutable_floor()->set_fraction(combined.floor().seconds() / ranking->candidate_median_seconds());
  }
  return combined;
}

}  // namespace

std::optional<v1::WorkResult> RunReplicas(const v1::EvaluateWork& work, const EvaluateReplica& evaluate) {
  const int wanted = measure::ReplicasOf(work.options());
  std::vector<v1::EvaluationResult> results;
  for (int replica = 0; replica < wanted; ++replica) {
    std::optional<v1::WorkResult> got = evaluate(replica, WorkOf(work, replica));
    if (!got.has_value() || !got->has_evaluation()) return got;
    v1::EvaluationResult& result = *got->mutable_evaluation();
    if (result.verdict() != v1::VERDICT_CORRECT) {
      if (replica > 0) {
        result.set_reason(absl::StrCat("in pair of processes ", replica + 1, " of ", wanted, ": ", result.reason()));
      }
      return got;
    }
    results.push_back(std::move(result));
    if (measure::AgainstRival(results.back()) == nullptr) break;
  }
  v1::WorkResult all;
  *all.mutable_evaluation() = Combined(std::move(results));
  return all;
}

}  // namespace grove::worker
