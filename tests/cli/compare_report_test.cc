#include "clients/cli/compare_report.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "clients/cli/job_model.h"
#include "clients/cli/report.h"
#include "tests/cli/samples.h"

namespace grove::cli {
namespace {

v1::Job CompareJob() {
  v1::Job job;
  job.set_id("j-a");
  job.set_state(v1::JOB_STATE_DONE);
  job.mutable_spec()->mutable_eval()->mutable_rival()->set_name("old.cu");
  return job;
}

v1::KernelNode Compared(v1::Comparison comparison, double ratio, double low, double high) {
  v1::KernelNode kernel;
  kernel.set_id("j-a/k1");
  kernel.mutable_candidate()->set_name("new.cu");
  v1::EvaluationResult& result = *kernel.mutable_result();
  result.set_verdict(v1::VERDICT_CORRECT);
  result.mutable_rival()->set_verdict(v1::VERDICT_CORRECT);
  v1::BaselineTiming* eager = result.mutable_timing()->add_baselines();
  eager->set_baseline(v1::BASELINE_EAGER);
  eager->set_speedup(4);
  eager->set_speedup_low(3.9);
  eager->set_speedup_high(4.1);
  eager->set_reference_median_seconds(4e-4);
  eager->set_candidate_median_seconds(1e-4);
  eager->set_comparison(v1::COMPARISON_FASTER);
  v1::BaselineTiming* rival = result.mutable_timing()->add_baselines();
  rival->set_baseline(v1::BASELINE_RIVAL);
  rival->set_speedup(ratio);
  rival->set_speedup_low(low);
  rival->set_speedup_high(high);
  rival->set_reference_median_seconds(2e-4);
  rival->set_candidate_median_seconds(1e-4);
  rival->set_samples(40);
  rival->set_resolution(0.008);
  rival->set_comparison(comparison);
  result.mutable_device()->mutable_calibration()->set_resolution(0.008);
  return kernel;
}

ExitCode CodeOf(const v1::KernelNode& kernel) { return ExitCodeOfCompare(CompareJob(), {&kernel, 1}); }

TEST_CASE("A comparison is told with ratio, interval, resolution, both times and both against eager", "[cli]") {
  const std::string text = RenderComparison(CompareJob(), Compared(v1::COMPARISON_FASTER, 2, 1.9, 2.1), Style());
  CHECK(absl::StrContains(text, "new.cu is FASTER than old.cu  2x [1.9, 2.1]"));
  CHECK(absl::StrContains(text, "old.cu 200 us, new.cu 100 us (medians of 40 pairs)"));
  CHECK(absl::StrContains(text, "resolution 0.8 %\n"));
  CHECK(absl::StrContains(text, "eager: new.cu 4x [3.9, 4.1] FASTER; old.cu 2x by the medians"));
  CHECK_FALSE(absl::StrContains(text, "  others "));
  v1::KernelNode shared = Compared(v1::COMPARISON_FASTER, 2, 1.9, 2.1);
  shared.mutable_result()->mutable_timing()->mutable_device_state()->set_foreign_processes(1);
  shared.mutable_result()->mutable_timing()->mutable_device_state()->set_unavailable("no NVML");
  shared.mutable_result()->mutable_timing()->set_reruns(2);
  const std::string told = RenderComparison(CompareJob(), shared, Style());
  CHECK(absl::StrContains(told, "1 process of others held the GPU"));
  CHECK(absl::StrContains(told, "  clocks     not known: no NVML\n"));
  CHECK(absl::StrContains(told, "  reruns     2 times the measurement began anew"));
  CHECK(absl::StrContains(RenderComparison(CompareJob(), Compared(v1::COMPARISON_SAME, 1, 0.999, 1.001), Style()),
                          "new.cu is the SAME as old.cu"));
  v1::KernelNode several = Compared(v1::COMPARISON_SAME, 1, 0.999, 1.001);
  several.mutable_result()->mutable_timing()->mutable_baselines(1)->set_replicas(4);
  CHECK(absl::StrContains(RenderComparison(CompareJob(), several, Style()),
                          "(medians of 40 pairs in 4 pairs of processes)"));
  v1::KernelNode never = Compared(v1::COMPARISON_UNCLEAR, 1.01, 0.99, 1.03);
  never.mutable_result()->mutable_device()->clear_calibration();
  const std::string unclear = RenderComparison(CompareJob(), never, Style());
  CHECK(absl::StrContains(unclear, "new.cu against old.cu: UNCLEAR"));
  CHECK(absl::StrContains(unclear, "never calibrated"));
  CHECK(absl::StrContains(unclear, "more time (--max-time), a quieter machine or a calibration may tell"));
}

TEST_CASE("Exit codes of a comparison say slower, unclear, and whose verdict stood in the way", "[cli]") {
  CHECK(CodeOf(Compared(v1::COMPARISON_FASTER, 2, 1.9, 2.1)) == ExitCode::kOk);
  CHECK(CodeOf(Compared(v1::COMPARISON_SAME, 1, 1, 1)) == ExitCode::kOk);
  CHECK(static_cast<int>(CodeOf(Compared(v1::COMPARISON_SLOWER, 0.5, 0.4, 0.6))) == 17);
  CHECK(static_cast<int>(CodeOf(Compared(v1::COMPARISON_UNCLEAR, 1, 0.5, 2))) == 18);
  v1::KernelNode kernel = Compared(v1::COMPARISON_FASTER, 2, 1.9, 2.1);
  v1::BaselineTiming* rival = kernel.mutable_result()->mutable_timing()->mutable_baselines(1);
  rival->Clear();
  rival->set_baseline(v1::BASELINE_RIVAL);
  rival->set_unavailable("the rival is WRONG");
  kernel.mutable_result()->mutable_rival()->set_verdict(v1::VERDICT_WRONG);
  kernel.mutable_result()->mutable_rival()->set_reason("12 of 64 elements differ");
  CHECK(CodeOf(kernel) == ExitCode::kWrong);
  const std::string text = RenderComparison(CompareJob(), kernel, Style());
  CHECK(absl::StrContains(text, "old.cu  WRONG"));
  CHECK(absl::StrContains(text, "12 of 64"));
  kernel.mutable_result()->mutable_rival()->set_verdict(v1::VERDICT_CORRECT);
  CHECK(CodeOf(kernel) == ExitCode::kUnmeasurable);
  kernel.mutable_result()->set_verdict(v1::VERDICT_CRASHED);
  CHECK(CodeOf(kernel) == ExitCode::kCrashed);
  // Of several, the worst.
  const std::vector<v1::KernelNode> several = {Compared(v1::COMPARISON_UNCLEAR, 1, 0.5, 2),
                                               Compared(v1::COMPARISON_SLOWER, 0.5, 0.4, 0.6)};
  CHECK(ExitCodeOfCompare(CompareJob(), several) == ExitCode::kSlower);
  v1::Job cancelled = CompareJob();
  cancelled.set_state(v1::JOB_STATE_CANCELLED);
  CHECK(ExitCodeOfCompare(cancelled, several) == ExitCode::kInterrupted);
}

TEST_CASE("The document of a comparison has its figures, or null", "[cli]") {
  v1::KernelNode kernel = Compared(v1::COMPARISON_FASTER, 2, 1.9, 2.1);
  const auto document = nlohmann::json::parse(CompareDocument(CompareJob(), {&kernel, 1}, ExitCode::kOk));
  CHECK(document["schema"] == "grove.v1/compare");
  CHECK(document["rival"] == "old.cu");
  const auto& one = document["results"][0];
  CHECK(one["comparison"] == "FASTER");
  CHECK(one["ratio_low"] == 1.9);
  CHECK(one["rival_seconds"] == 2e-4);
  CHECK(one["calibrated"] == true);
  CHECK(one["replicas"] == 1);
  kernel.mutable_result()->mutable_timing()->mutable_baselines(1)->set_replicas(4);
  const auto several = nlohmann::json::parse(CompareDocument(CompareJob(), {&kernel, 1}, ExitCode::kOk));
  CHECK(several["results"][0]["replicas"] == 4);
}

TEST_CASE("A calibration is told with its table and its warnings", "[cli]") {
  v1::DeviceCalibrated calibrated;
  calibrated.set_worker("w-1");
  calibrated.mutable_device()->set_name("NVIDIA X");
  v1::Calibration& c = *calibrated.mutable_calibration();
  c.set_resolution(0.008);
  c.set_same_share(0.975);
  c.set_coverage(0.95);
  c.set_runs_coverage(0.8);
  c.set_runs(40);
  c.set_detection_runs(20);
  c.set_detection_share(1);
  c.set_detection_slowdown(0.02);
  c.set_detection_sampling_seconds(1.5);
  c.set_bandwidth_bytes_per_second(4.1e12);
  v1::Rate* rate = c.add_rates();
  rate->set_precision("tf32");
  rate->set_operations_per_second(4e14);
  v1::CalibrationKernel* kernel = c.add_kernels();
  kernel->set_name("memory");
  kernel->set_seconds(5e-5);
  kernel->set_runs(8);
  kernel->set_same(8);
  c.add_warnings("times drift here");
  const std::string text = RenderCalibration(calibrated, Style());
  CHECK(absl::StrContains(text, "0.8 % at worst: 97.5 % of 40 runs of a kernel against itself come out as SAME"));
  CHECK(absl::StrContains(text, "a slowdown of 2 % was found in 100 % of 20 runs of at most 1.5"));
  CHECK(absl::StrContains(text, "4100 GB/s"));
  CHECK(absl::StrContains(text, "tf32 400 T/s"));
  CHECK(absl::StrContains(text, "warning: times drift here"));
  CHECK(absl::StrContains(text, "100 % of 20 runs"));
  CHECK(
      absl::StrContains(text, "95 % of them hold the truth (nominal: 95 %); 80 % where they know of their own pairs"));
  v1::DeviceInfo device;
  device.set_kind(v1::DEVICE_KIND_CUDA);
  CHECK(absl::StrContains(ResolutionLine(device, 0), "3 % assumed"));
  *device.mutable_calibration() = c;
  CHECK(absl::StrContains(ResolutionLine(device, 0), "0.8 %, calibrated"));
}

TEST_CASE("What a watcher sees as the best of a search was measured twice, by the lower figure", "[cli]") {
  JobModel model;
  uint64_t seq = 0;
  const auto apply = [&](v1::Event event) {
    event.set_seq(++seq);
    model.Apply(event);
  };
  v1::Event created;
  created.mutable_job_created()->mutable_spec()->mutable_search();
  apply(created);
  for (const char* id : {"j-a/k1", "j-a/k2"}) {
    v1::Event written;
    written.mutable_kernel_written()->mutable_kernel()->set_id(id);
    apply(written);
  }
  const auto finish = [&](const std::string& id, double speedup, bool again) {
    v1::Event event;
    v1::EvaluationFinished* end = event.mutable_evaluation_finished();
    end->set_kernel(id);
    end->set_confirmation(again);
    *end->mutable_result() = CorrectResult(speedup, speedup, speedup);
    apply(event);
  };
  finish("j-a/k1", 3, false);
  REQUIRE(model.best() != nullptr);
  CHECK_FALSE(model.best_confirmed());
  finish("j-a/k1", 1.2, true);
  CHECK(model.best_confirmed());
  CHECK(model.best()->result().timing().baselines(0).speedup() == 1.2);
  finish("j-a/k2", 1.5, false);
  CHECK(model.best()->id() == "j-a/k1");
  finish("j-a/k2", 1.6, true);
  CHECK(model.best()->id() == "j-a/k2");
  CHECK(model.best()->result().timing().baselines(0).speedup() == 1.5);
  CHECK(model.finished() == 2);
}

}  // namespace
}  // namespace grove::cli
