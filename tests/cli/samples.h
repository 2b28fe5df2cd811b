// Canned results for the tests of what the command line shows.
#pragma once

#include <string>

#include "grove/v1/services.pb.h"
#include "grove/v1/tree.pb.h"

namespace grove::cli {

inline v1::EvaluationResult CorrectResult(double speedup, double low, double high) {
  v1::EvaluationResult result;
  result.set_verdict(v1::VERDICT_CORRECT);
  result.set_reason("correct");
  result.mutable_build()->set_ok(true);
  result.mutable_build()->set_seconds(1.25);
  result.mutable_build()->set_command("g++ -O3");
  v1::BaselineTiming* timing = result.mutable_timing()->add_baselines();
  timing->set_baseline(v1::BASELINE_EAGER);
  timing->set_reference_median_seconds(0.00411);
  timing->set_candidate_median_seconds(0.00411 / speedup);
  timing->set_speedup(speedup);
  timing->set_speedup_low(low);
  timing->set_speedup_high(high);
  timing->set_samples(120);
  result.mutable_correctness()->set_trials(5);
  result.mutable_correctness()->set_trials_passed(5);
  result.mutable_device()->set_kind(v1::DEVICE_KIND_CPU);
  result.mutable_device()->set_name("Test CPU");
  result.mutable_device()->set_arch("x86-64/avx2");
  result.mutable_device()->set_torch("1.13.1");
  return result;
}

inline v1::EvaluationResult WrongResult() {
  v1::EvaluationResult result;
  result.set_verdict(v1::VERDICT_WRONG);
  result.set_reason("12 of 64 elements differ");
  result.mutable_build()->set_ok(true);
  v1::CorrectnessReport* report = result.mutable_correctness();
  report->set_trials(5);
  report->set_trials_passed(2);
  report->set_first_failing_trial(3);
  v1::OutputComparison* output = report->add_outputs();
  output->set_elements(64);
  output->set_mismatched(12);
  output->mutable_worst()->add_index(3);
  output->mutable_worst()->add_index(7);
  output->mutable_worst()->set_expected(0.5);
  output->mutable_worst()->set_got(0.75);
  output->mutable_worst()->set_error(0.25);
  output->mutable_worst()->set_allowed(0.0001);
  return result;
}

inline v1::EvaluationResult BuildFailedResult(int lines) {
  v1::EvaluationResult result;
  result.set_verdict(v1::VERDICT_BUILD_FAILED);
  result.set_reason("the compiler refused it");
  std::string log;
  for (int i = 1; i <= lines; ++i) log += "k.cpp:" + std::to_string(i) + ": error: no\n";
  result.mutable_build()->set_log(log);
  return result;
}

inline v1::TreeNode Idea(const std::string& id, const std::string& parent, const std::string& title) {
  v1::TreeNode node;
  node.mutable_idea()->set_id(id);
  node.mutable_idea()->set_parent(parent);
  node.mutable_idea()->set_title(title);
  return node;
}

inline v1::TreeNode Kernel(const std::string& id, const std::string& idea, const v1::EvaluationResult& result) {
  v1::TreeNode node;
  node.mutable_kernel()->set_id(id);
  node.mutable_kernel()->set_idea(idea);
  if (result.verdict() != v1::VERDICT_UNSPECIFIED) {
    *node.mutable_kernel()->mutable_result() = result;
    node.mutable_kernel()->set_state(v1::NODE_STATE_DONE);
  } else {
    node.mutable_kernel()->set_state(v1::NODE_STATE_OPEN);
  }
  return node;
}

}  // namespace grove::cli
