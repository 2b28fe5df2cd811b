#include "clients/cli/report.h"

#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "tests/cli/samples.h"

namespace grove::cli {
namespace {

v1::KernelNode Named(const std::string& name, const v1::EvaluationResult& result) {
  v1::KernelNode kernel = Kernel("j-a/k1", "", result).kernel();
  kernel.mutable_candidate()->set_name(name);
  return kernel;
}

TEST_CASE("A correct evaluation has its speedup with interval, baseline, medians, samples and device", "[cli]") {
  CHECK(RenderEvaluation(Named("good.cpp", CorrectResult(3.42, 3.31, 3.55)), Style()) ==
        "good.cpp  CORRECT  3.42x [3.31, 3.55] vs eager  j-a/k1\n"
        "  against    eager: 3.42x [3.31, 3.55] (95 % interval), medians 4.11 ms -> 1.20 ms, 120 pairs\n"
        "  checked    5 of 5 input draws passed; scaled tolerance\n"
        "  build      ok in 1.25 s: g++ -O3\n"
        "  device     Test CPU (x86-64/avx2), torch 1.13.1\n");
}

TEST_CASE("What a call takes by itself is told where a row of them takes longer", "[cli]") {
  v1::EvaluationResult result = CorrectResult(2, 1.9, 2.1);
  v1::TimingReport* timing = result.mutable_timing();
  timing->mutable_baselines(0)->set_candidate_median_seconds(1.13e-5);
  CHECK_FALSE(absl::StrContains(RenderEvaluation(Named("k.cu", result), Style()), "  alone "));
  timing->set_alone_seconds(1.08e-5);
  CHECK(absl::StrContains(RenderEvaluation(Named("k.cu", result), Style()),
                          " pairs\n  alone      10.8 us by itself, of 11.3 us in a row\n"));
  timing->set_alone_seconds(1.12e-5);
  CHECK_FALSE(absl::StrContains(RenderEvaluation(Named("k.cu", result), Style()), "  alone "));
  timing->set_alone_seconds(1.3e-5);
  CHECK_FALSE(absl::StrContains(RenderEvaluation(Named("k.cu", result), Style()), "  alone "));
  // Held against the first baseline that has figures.
  timing->set_alone_seconds(1.08e-5);
  timing->mutable_baselines(0)->set_unavailable("torch.compile failed");
  CHECK_FALSE(absl::StrContains(RenderEvaluation(Named("k.cu", result), Style()), "  alone "));
}

TEST_CASE("Others who held the GPU while it was timed are told, none and unknown ones are not", "[cli]") {
  v1::EvaluationResult result = CorrectResult(2, 1.9, 2.1);
  CHECK_FALSE(absl::StrContains(RenderEvaluation(Named("k.cu", result), Style()), "  others "));
  result.mutable_timing()->mutable_device_state()->set_foreign_processes(0);
  CHECK_FALSE(absl::StrContains(RenderEvaluation(Named("k.cu", result), Style()), "  others "));
  result.mutable_timing()->mutable_device_state()->set_foreign_processes(1);
  CHECK(absl::StrContains(RenderEvaluation(Named("k.cu", result), Style()),
                          "  others     1 process of others held the GPU while it was timed\n"));
  result.mutable_timing()->mutable_device_state()->set_foreign_processes(2);
  CHECK(absl::StrContains(RenderEvaluation(Named("k.cu", result), Style()), "  others     2 processes of others"));
}

TEST_CASE("The device's state while it was timed is told, or why it is not known, and nothing where there is none",
          "[cli]") {
  v1::EvaluationResult result = CorrectResult(2, 1.9, 2.1);
  v1::TimingReport* timing = result.mutable_timing();
  const auto text = [&result] { return RenderEvaluation(Named("k.cu", result), Style()); };
  CHECK_FALSE(absl::StrContains(text(), "  clocks "));
  CHECK_FALSE(absl::StrContains(text(), "  reruns "));
  v1::DeviceState* state = timing->mutable_device_state();
  state->set_foreign_processes(0);
  CHECK_FALSE(absl::StrContains(text(), "  clocks "));
  state->set_unavailable("NVML does not\nanswer");
  CHECK(absl::StrContains(text(), "  clocks     not known: NVML does not answer\n"));
  state->clear_unavailable();
  state->set_readings(40);
  state->set_sm_clock_mhz_low(1700);
  state->set_sm_clock_mhz_median(1965);
  state->set_sm_clock_mhz_high(1980);
  state->set_temperature_celsius_high(65);
  state->set_power_watts_median(511.6);
  const std::string clocks = "  clocks     SM 1700 to 1980 MHz, median 1965; temperature 65 C at most; power 512 W; ";
  CHECK(absl::StrContains(text(), clocks + "not throttled\n"));
  state->add_throttle_reasons("sw_power_cap");
  state->add_throttle_reasons("hw_slowdown");
  CHECK(absl::StrContains(text(), clocks + "throttled: sw_power_cap, hw_slowdown\n"));
  CHECK(absl::StrContains(RenderKernelNode(Named("k.cu", result), {}, Style()), clocks));
  state->set_unavailable("the readings ended");
  state->clear_power_watts_median();
  CHECK(absl::StrContains(text(), "; power not known; throttled: sw_power_cap, hw_slowdown; the readings ended\n"));
  timing->set_reruns(1);
  CHECK(absl::StrContains(text(), "  reruns     1 time the measurement began anew, because most of it was invalid\n"));
}

TEST_CASE("Beside the samples stands what was read of the GPU in each", "[cli]") {
  v1::EvaluationResult result = CorrectResult(2, 1.9, 2.1);
  v1::BaselineTiming* timing = result.mutable_timing()->mutable_baselines(0);
  for (int i = 0; i < 3; ++i) {
    timing->add_reference_seconds(2e-3);
    timing->add_candidate_seconds(1e-3);
  }
  const auto text = [&result] { return RenderKernelNode(Named("k.cu", result), {}, Style()); };
  const std::string pair = "    " + FormatSeconds(2e-3) + " -> " + FormatSeconds(1e-3);
  CHECK(absl::StrContains(text(), pair + "\n" + pair + "\n" + pair + "\n"));
  v1::SampleState* state = timing->add_sample_states();
  state->set_readings(4);
  state->set_reference_sm_mhz(1980);
  state->set_candidate_sm_mhz(1965);
  state->set_temperature_celsius(61);
  state->set_power_watts(511.6);
  *timing->add_sample_states() = *state;
  state = timing->mutable_sample_states(1);
  state->clear_candidate_sm_mhz();
  state->add_throttle_reasons("sw_power\ncap");
  timing->add_sample_states();
  CHECK(absl::StrContains(text(), pair + "   SM 1980 / 1965 MHz, 61 C, 512 W\n" + pair +
                                      "   SM 1980 / ? MHz, 61 C, 512 W, sw_power cap\n" + pair + "\n"));
}

TEST_CASE("Whose work it was is told where the job has a policy", "[cli]") {
  v1::EvaluationResult result = CorrectResult(2, 1.9, 2.1);
  v1::WorkReport* work = result.mutable_work();
  for (const char* library : {"liba.so", "libb.so", "libc.so", "libd.so", "libe.so"}) work->add_libraries(library);
  CHECK_FALSE(absl::StrContains(RenderEvaluation(Named("k.py", result), Style()), "  work "));
  CHECK(absl::StrContains(RenderKernelNode(Named("k.py", result), {}, Style()),
                          "  work       anything: loaded liba.so, libb.so, libc.so, libd.so, libe.so\n"));
  work->set_policy(v1::WORK_POLICY_OWN_KERNELS);
  work->set_own_share(0.975);
  work->set_how("a profiler");
  for (int i = 0; i < 5; ++i) {
    v1::KernelProfile* kernel = work->add_kernels();
    kernel->set_name("kernel" + std::to_string(i));
    kernel->set_share(0.5 / (i + 1));
    kernel->set_own(i != 1);
  }
  const std::string text = RenderEvaluation(Named("k.py", result), Style());
  CHECK(absl::StrContains(text,
                          "  work       own_kernels: 98 % its own; loaded liba.so, libb.so, libc.so, libd.so and 1 "
                          "more; seen by a profiler\n"
                          "              50 % own   kernel0\n"
                          "              25 % other kernel1\n"
                          "              17 % own   kernel2\n"));
  CHECK_FALSE(absl::StrContains(text, "kernel3"));
  CHECK(absl::StrContains(RenderKernelNode(Named("k.py", result), {}, Style()), "kernel4"));
}

v1::ProfileReport SampleProfile(int kernels) {
  v1::ProfileReport profile;
  for (int i = 0; i < kernels; ++i) {
    v1::KernelProfile* kernel = profile.add_kernels();
    kernel->set_name(i == 0 ? "void Norm<(int)4>(float4 *, const float4 *, const float4 *, long)"
                            : "k\x1b[31m" + std::to_string(i));
    kernel->set_seconds(20e-6);
    kernel->set_share(1.0 / kernels);
    kernel->set_occupancy(0.731);
    kernel->set_dram_fraction(0.672);
    kernel->set_l2_hit_fraction(0.338);
    kernel->set_sm_fraction(0.256);
    kernel->set_registers(40);
    kernel->set_shared_bytes(2048);
    kernel->set_local_bytes(16);
    kernel->set_grid("65536x1x1");
    kernel->set_block("256x1x1");
    kernel->set_own(i == 0);
    for (const char* reason : {"long_scoreboard", "wait", "barrier", "drain"}) {
      v1::StallShare* stall = kernel->add_stalls();
      stall->set_reason(reason);
      stall->set_share(0.25);
    }
  }
  for (int i = 0; i < 12; ++i) {
    v1::Rate* one = profile.add_instructions();
    one->set_precision("OP" + std::to_string(i));
    one->set_operations_per_second(100 - i);
  }
  return profile;
}

TEST_CASE("A profile is a row per kernel, and the instructions of the build", "[cli]") {
  v1::EvaluationResult result = CorrectResult(2, 1.9, 2.1);
  *result.mutable_profile() = SampleProfile(1);
  const std::string text = RenderEvaluation(Named("k.cu", result), Style());
  CHECK(absl::StrContains(
      text,
      "  profile    kernels of one call, as Nsight Compute saw them\n"
      "   KERNEL                                        WHOSE  TIME     SHARE  OCCUPANCY  DRAM  L2 HITS  SM    TENSOR  "
      "REGISTERS  SHARED   SPILLED  GRID                  STALLED BY\n"
      "   void Norm<(int)4>(float4 *, const float4 ...  own    20.0 us  100 %  73 %       67 %  34 %     26 %  0 %     "
      "40         2.0 KiB  16 B     65536x1x1 of 256x1x1  long scoreboard 25 %, wait 25 %, barrier 25 %\n"
      "  code       100 OP0, 99 OP1, 98 OP2, 97 OP3, 96 OP4, 95 OP5, 94 OP6, 93 OP7, 92 OP8, 91 OP9, ... (instructions "
      "in "
      "the build)\n"));
  *result.mutable_profile() = SampleProfile(12);
  const std::string many = RenderEvaluation(Named("k.cu", result), Style());
  CHECK(absl::StrContains(many, "(4 more are not shown)"));
  CHECK_FALSE(absl::StrContains(many, "\x1b"));
  const std::string all = RenderKernelNode(Named("k.cu", result), {}, Style());
  CHECK_FALSE(absl::StrContains(all, "not shown"));
  CHECK(absl::StrContains(all, "89 OP11 (instructions"));
}

TEST_CASE("Where there is no profile it says why, and shows what the build knows", "[cli]") {
  v1::EvaluationResult result = CorrectResult(2, 1.9, 2.1);
  *result.mutable_profile() = SampleProfile(0);
  result.mutable_profile()->set_unavailable("Nsight Compute (ncu) was not found\nat all");
  const std::string text = RenderEvaluation(Named("k.cu", result), Style());
  CHECK(absl::StrContains(text, "  profile    none: Nsight Compute (ncu) was not found at all\n"));
  CHECK(absl::StrContains(text, "  code       100 OP0"));
  CHECK_FALSE(absl::StrContains(text, "OCCUPANCY"));
}

TEST_CASE("A wrong one has the count, the worst element and the first failing draw", "[cli]") {
  CHECK(RenderEvaluation(Named("bad.cpp", WrongResult()), Style()) ==
        "bad.cpp  WRONG  j-a/k1\n"
        "  reason     12 of 64 elements differ\n"
        "  checked    2 of 5 input draws passed, first failure in draw 3; scaled tolerance\n"
        "  output     0: 12 of 64 elements differ\n"
        "  worst      at [3, 7]: expected 0.5, got 0.75, error 0.25, allowed 0.0001\n"
        "  build      ok\n");
}

TEST_CASE("An output of another type is told as that, without elements that were never compared", "[cli]") {
  v1::EvaluationResult result = WrongResult();
  v1::OutputComparison* output = result.mutable_correctness()->mutable_outputs(0);
  output->set_expected_type("float32[64]");
  output->set_got_type("float64[64]");
  output->set_mismatched(64);
  output->clear_worst();
  const std::string text = RenderEvaluation(Named("bad.py", result), Style());
  CHECK(absl::StrContains(text, "  output     0: expected float32[64], got float64[64]\n"));
  CHECK_FALSE(absl::StrContains(text, "worst"));
  CHECK_FALSE(absl::StrContains(text, "64 of 64"));
}

TEST_CASE("Compiler text is bounded and says where the rest is", "[cli]") {
  const std::string text = RenderEvaluation(Named("k.cpp", BuildFailedResult(100)), Style());
  CHECK(absl::StrContains(text, "k.cpp:30: error"));
  CHECK_FALSE(absl::StrContains(text, "k.cpp:31: error"));
  CHECK(absl::StrContains(text, "... 70 more lines: grove show j-a/k1"));
  CHECK(absl::StrContains(RenderKernelNode(Named("k.cpp", BuildFailedResult(100)), {}, Style()), "k.cpp:100: error"));
}

TEST_CASE("A limit is shown set and reached, with the flag that raises it", "[cli]") {
  v1::EvaluationResult result;
  result.set_verdict(v1::VERDICT_LIMIT_EXCEEDED);
  result.mutable_fault()->set_stage("check");
  result.mutable_fault()->set_limit("memory_bytes");
  result.mutable_fault()->set_limit_set(1 << 30);
  result.mutable_fault()->set_limit_reached(1.5 * (1 << 30));
  CHECK(absl::StrContains(RenderEvaluation(Named("k.cpp", result), Style()),
                          "  fault      stage check, limit memory_bytes = 1.0 GiB, reached 1.5 GiB (raise it with "
                          "--limit memory_bytes=...)\n"));
}

TEST_CASE("Nothing that a candidate printed reaches the terminal as an escape sequence", "[cli]") {
  v1::EvaluationResult result = BuildFailedResult(1);
  const std::string evil = "\x1b]0;owned\a\x1b[2J";
  result.set_reason(evil);
  result.mutable_build()->set_log(evil);
  result.mutable_build()->set_command(evil);
  result.mutable_fault()->set_message(evil);
  result.mutable_fault()->set_stderr_tail(evil);
  result.mutable_fault()->set_evidence(evil);
  result.mutable_device()->set_name(evil);
  result.mutable_device()->set_arch("x");
  v1::KernelNode kernel = Named(evil, result);
  kernel.mutable_candidate()->set_source(evil);
  kernel.set_notes(evil);
  CHECK_FALSE(absl::StrContains(RenderEvaluation(kernel, Style()), "\x1b"));
  CHECK_FALSE(absl::StrContains(RenderKernelNode(kernel, {}, Style()), "\x1b"));
}

TEST_CASE("Show lists the lineage up to the reference and the source", "[cli]") {
  v1::KernelNode kernel = Named("k.cpp", CorrectResult(2, 1.9, 2.1));
  kernel.mutable_candidate()->set_source("int x;");
  const std::vector<v1::TreeNode> lineage = {Idea("j-a/i2", "j-a/k0", "Unroll"), Kernel("j-a/k0", "", WrongResult())};
  const std::string text = RenderKernelNode(kernel, lineage, Style());
  CHECK(absl::StrContains(text,
                          "  lineage    \n    j-a/i2  idea: Unroll\n    j-a/k0  kernel: WRONG\n    the reference\n"));
  CHECK(absl::StrContains(text, "int x;\n"));
}

TEST_CASE("Jobs and workers are tables", "[cli]") {
  v1::Job job;
  job.set_id("j-abcdefgh");
  job.set_state(v1::JOB_STATE_DONE);
  job.mutable_spec()->set_name("softmax");
  job.mutable_spec()->mutable_search();
  job.mutable_counts()->set_kernels(8);
  job.mutable_counts()->set_finished(8);
  job.mutable_counts()->set_correct(5);
  job.set_best_speedup(3.42), job.set_best_speedup_low(3.31), job.set_best_speedup_high(3.55);
  job.set_created_unix_nanos(1'000'000'000);
  CHECK(RenderJobs({job}, 31'000'000'000) ==
        "JOB         KIND    NAME     STATE  JUDGED  CORRECT  BEST                CREATED\n"
        "j-abcdefgh  search  softmax  DONE   8/8     5        3.42x [3.31, 3.55]  30 s ago\n");
  v1::WorkerStatus worker;
  worker.set_worker_id("w-1");
  worker.set_name("box");
  worker.set_connected(true);
  worker.set_capacity(3);
  CHECK(RenderWorkers({worker}) ==
        "WORKER  NAME  DEVICE  STATE  LEASES  DONE  RESOLUTION    HEARTBEAT  VERSION  SANDBOX\n"
        "w-1     box   -       idle   0/3     0     uncalibrated  0.0 s\n");
}

TEST_CASE("A search without a correct kernel says so", "[cli]") {
  v1::Job job;
  job.set_id("j-a");
  job.set_state(v1::JOB_STATE_DONE);
  (*job.mutable_counts()->mutable_verdicts())[v1::VERDICT_WRONG] = 2;
  CHECK(RenderSearchEnd(job, nullptr, Style()) ==
        "search j-a  DONE  0 ideas, 0 kernels: 2 wrong\n  best       no kernel was correct\n");
}

}  // namespace
}  // namespace grove::cli
