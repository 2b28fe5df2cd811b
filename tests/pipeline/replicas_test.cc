#include "worker/pipeline/replicas.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "absl/strings/match.h"
#include "common/measure/comparison.h"

namespace grove::worker {
namespace {

v1::EvaluateWork Comparison(int replicas) {
  v1::EvaluateWork work;
  work.mutable_candidate()->set_source("new");
  work.mutable_rival()->set_source("old");
  v1::EvaluationOptions& options = *work.mutable_options();
  options.set_replicas(replicas);
  options.set_trials(5);
  options.add_distributions(v1::INPUT_DISTRIBUTION_SPARSE);
  options.set_profile(true);
  options.set_work(v1::WORK_POLICY_OWN_KERNELS);
  return work;
}

v1::WorkResult Timed(double log_ratio) {
  v1::WorkResult got;
  v1::EvaluationResult& result = *got.mutable_evaluation();
  result.set_verdict(v1::VERDICT_CORRECT);
  result.set_reason("4x [3.9, 4.1] against eager, 10 samples");
  result.mutable_rival()->set_verdict(v1::VERDICT_CORRECT);
  const auto add = [&](v1::Baseline baseline, double log) {
    v1::BaselineTiming* timing = result.mutable_timing()->add_baselines();
    timing->set_baseline(baseline);
    timing->set_speedup(std::exp(log));
    timing->set_speedup_low(std::exp(log - 0.01));
    timing->set_speedup_high(std::exp(log + 0.01));
    timing->set_reference_median_seconds(1e-4 * std::exp(log));
    timing->set_candidate_median_seconds(1e-4);
    timing->set_samples(10);
  };
  add(v1::BASELINE_EAGER, std::log(4));
  add(v1::BASELINE_RIVAL, log_ratio);
  for (const char* stage : {"start", "check", "time"}) {
    v1::StageTime* time = result.add_stages();
    time->set_stage(stage);
    time->set_seconds(0.5);
  }
  result.mutable_floor()->set_seconds(5e-5);
  result.mutable_floor()->set_fraction(0.9);
  return got;
}

v1::WorkResult Ended(v1::Verdict verdict, const std::string& reason) {
  v1::WorkResult got;
  got.mutable_evaluation()->set_verdict(verdict);
  got.mutable_evaluation()->set_reason(reason);
  return got;
}

TEST_CASE("The first pair of processes is checked as asked, the others once, and all become one result", "[replicas]") {
  std::vector<v1::EvaluateWork> asked;
  const auto all = RunReplicas(Comparison(4), [&](int replica, const v1::EvaluateWork& work) {
    CHECK(replica == static_cast<int>(asked.size()));
    asked.push_back(work);
    return Timed(0.01 * replica);
  });
  REQUIRE(asked.size() == 4);
  CHECK(asked[0].SerializeAsString() == Comparison(4).SerializeAsString());
  for (size_t i = 1; i < asked.size(); ++i) {
    const v1::EvaluationOptions& options = asked[i].options();
    CHECK(options.trials() == 1);
    CHECK(options.only_given_inputs());
    CHECK(options.distributions().empty());
    CHECK_FALSE(options.profile());
    // Each times its part of all, and whose work it is is asked of each.
    CHECK(options.replicas() == 4);
    CHECK(options.work() == v1::WORK_POLICY_OWN_KERNELS);
    CHECK(asked[i].rival().source() == "old");
  }
  REQUIRE(all.has_value());
  const v1::EvaluationResult& result = all->evaluation();
  CHECK(result.verdict() == v1::VERDICT_CORRECT);
  CHECK(absl::StartsWith(result.reason(), "4x ["));
  CHECK(absl::EndsWith(result.reason(), "against eager, 40 samples in 4 pairs of processes"));
  const v1::BaselineTiming* rival = measure::AgainstRival(result);
  REQUIRE(rival != nullptr);
  CHECK(rival->replicas() == 4);
  CHECK(rival->samples() == 40);
  CHECK(std::log(rival->speedup()) == Approx(0.015));
  CHECK(result.timing().baselines(0).replicas() == 4);
  // Each stage once, with the seconds of all.
  REQUIRE(result.stages_size() == 3);
  CHECK(result.stages(1).stage() == "check");
  CHECK(result.stages(1).seconds() == 2);
  CHECK(result.floor().fraction() == Approx(0.5));
}

TEST_CASE("The first verdict that is not CORRECT decides, and says in which pair of processes", "[replicas]") {
  int made = 0;
  const auto decided = [&](int bad, const v1::WorkResult& ended) {
    made = 0;
    return RunReplicas(Comparison(4), [&](int replica, const v1::EvaluateWork&) {
      ++made;
      return replica == bad ? ended : Timed(0);
    });
  };
  auto all = decided(2, Ended(v1::VERDICT_WRONG, "12 of 64 elements differ"));
  CHECK(made == 3);
  CHECK(all->evaluation().verdict() == v1::VERDICT_WRONG);
  CHECK(all->evaluation().reason() == "in pair of processes 3 of 4: 12 of 64 elements differ");
  CHECK_FALSE(all->evaluation().has_timing());
  // In the first it is as it is for any candidate.
  all = decided(0, Ended(v1::VERDICT_CRASHED, "SIGSEGV"));
  CHECK(made == 1);
  CHECK(all->evaluation().reason() == "SIGSEGV");
  v1::WorkResult failure;
  failure.set_infrastructure_failure("the judge ended");
  all = decided(1, failure);
  CHECK(made == 2);
  CHECK(all->infrastructure_failure() == "the judge ended");
}

TEST_CASE("A rival that fails ends the comparison, and the times against the reference stay", "[replicas]") {
  int made = 0;
  const auto failing = [&](int bad) {
    made = 0;
    return RunReplicas(Comparison(4), [&](int replica, const v1::EvaluateWork&) {
      ++made;
      v1::WorkResult got = Timed(0);
      if (replica == bad) {
        v1::EvaluationResult& result = *got.mutable_evaluation();
        result.mutable_rival()->set_verdict(v1::VERDICT_CRASHED);
        v1::BaselineTiming* timing = result.mutable_timing()->mutable_baselines(1);
        timing->Clear();
        timing->set_baseline(v1::BASELINE_RIVAL);
        timing->set_unavailable("the rival is CRASHED: SIGABRT");
      }
      return got;
    });
  };
  auto all = failing(1);
  CHECK(made == 2);
  CHECK(all->evaluation().verdict() == v1::VERDICT_CORRECT);
  CHECK(all->evaluation().rival().verdict() == v1::VERDICT_CRASHED);
  CHECK(measure::AgainstRival(all->evaluation()) == nullptr);
  CHECK(all->evaluation().timing().baselines(0).replicas() == 2);
  CHECK(all->evaluation().timing().baselines(1).unavailable() ==
        "in pair of processes 2: the rival is CRASHED: SIGABRT");
  all = failing(0);
  CHECK(made == 1);
  CHECK(all->evaluation().timing().baselines(0).replicas() == 0);
  CHECK(all->evaluation().timing().baselines(1).unavailable() == "the rival is CRASHED: SIGABRT");
  CHECK(all->evaluation().reason() == "4x [3.9, 4.1] against eager, 10 samples");
}

TEST_CASE("What is cancelled between two pairs of processes gives nothing", "[replicas]") {
  int made = 0;
  CHECK_FALSE(RunReplicas(Comparison(4), [&](int replica, const v1::EvaluateWork&) -> std::optional<v1::WorkResult> {
                ++made;
                if (replica == 1) return std::nullopt;
                return Timed(0);
              }).has_value());
  CHECK(made == 2);
}

}  // namespace
}  // namespace grove::worker
