#include "worker/pipeline/pipeline.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/log.h"

namespace grove::worker {
namespace {

std::string Testcase(const std::string& name) {
  auto text = ReadFile(absl::StrCat(GROVE_TESTCASES, "/", name), 1 << 20);
  REQUIRE(text.ok());
  return *text;
}

// One pipeline for all cases: it is meant to go on after whatever they do to it.
class Farm {
 public:
  static Farm& Get() {
    static Farm* farm = new Farm;
    return *farm;
  }

  Farm() {
    char folder[] = "/tmp/grove-pipeline-test-XXXXXX";
    REQUIRE(mkdtemp(folder) != nullptr);
    folder_ = folder;
    options_.paths.libexec_dir = GROVE_LIBEXEC;
    options_.paths.include_dir = GROVE_INCLUDE;
    options_.paths.state_dir = folder_;
    options_.device.set_kind(v1::DEVICE_KIND_CPU);
    auto started = Pipeline::Start(
        options_,
        [this](const v1::WorkerProgress& p) {
          std::lock_guard<std::mutex> lock(mutex_);
          progress_[p.lease().work()].push_back(p.stage());
          details_[p.lease().work()].push_back(p.detail());
          changed_.notify_all();
        },
        [this](v1::WorkResult result) {
          std::lock_guard<std::mutex> lock(mutex_);
          const std::string work = result.lease().work();
          ++count_[work];
          results_[work] = std::move(result);
          changed_.notify_all();
        });
    INFO(started.status());
    REQUIRE(started.ok());
    pipeline_ = *std::move(started);
    std::atexit([] {
      Farm& farm = Get();
      farm.pipeline_.reset();
      std::filesystem::remove_all(farm.folder_);
    });
  }

  v1::Lease Submit(v1::Assignment assignment) {
    static int next = 0;
    v1::Lease lease;
    lease.set_work(absl::StrCat("work-", next++));
    lease.set_attempt(1);
    *assignment.mutable_lease() = lease;
    pipeline_->Submit(std::move(assignment));
    return lease;
  }

  v1::WorkResult Await(const v1::Lease& lease) {
    std::unique_lock<std::mutex> lock(mutex_);
    const bool came =
        changed_.wait_for(lock, std::chrono::seconds(200), [&] { return results_.count(lease.work()) > 0; });
    REQUIRE(came);
    return results_[lease.work()];
  }
  bool AwaitStage(const v1::Lease& lease, const std::string& stage) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(200), [&] {
      const auto& seen = progress_[lease.work()];
      return std::find(seen.begin(), seen.end(), stage) != seen.end();
    });
  }
  bool AwaitDetail(const v1::Lease& lease, const std::string& part) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(200), [&] {
      const auto& seen = details_[lease.work()];
      return std::any_of(seen.begin(), seen.end(),
                         [&](const std::string& detail) { return detail.find(part) != std::string::npos; });
    });
  }
  int Count(const v1::Lease& lease) {
    std::lock_guard<std::mutex> lock(mutex_);
    return count_[lease.work()];
  }
  Pipeline& pipeline() { return *pipeline_; }
  const PipelineOptions& options() const { return options_; }

 private:
  std::string folder_;
  PipelineOptions options_;
  std::unique_ptr<Pipeline> pipeline_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, v1::WorkResult> results_;
  std::map<std::string, int> count_;
  std::map<std::string, std::vector<std::string>> progress_, details_;
};

v1::Assignment Assignment(const std::string& source, v1::CandidateFormat format = v1::CANDIDATE_FORMAT_CPP) {
  v1::Assignment assignment;
  v1::EvaluateWork& work = *assignment.mutable_evaluate();
  work.mutable_problem()->set_name("relu");
  work.mutable_problem()->set_format(v1::PROBLEM_FORMAT_KERNELBENCH);
  work.mutable_problem()->set_source(Testcase("relu.py"));
  work.mutable_candidate()->set_format(format);
  work.mutable_candidate()->set_source(source);
  v1::EvaluationOptions& options = *work.mutable_options();
  options.set_trials(2);
  options.set_skip_timing(true);
  v1::Limits& limits = *options.mutable_limits();
  limits.set_call_wall_seconds(20);
  limits.set_run_wall_seconds(60);
  limits.set_memory_bytes(int64_t{512} << 20);
  limits.set_processes(64);
  limits.set_disk_bytes(int64_t{64} << 20);
  limits.set_output_bytes(1 << 20);
  return assignment;
}

v1::EvaluationResult Evaluate(v1::Assignment assignment) {
  Farm& farm = Farm::Get();
  const v1::WorkResult result = farm.Await(farm.Submit(std::move(assignment)));
  INFO(result.problem_error() << result.infrastructure_failure());
  REQUIRE(result.has_evaluation());
  return result.evaluation();
}

TEST_CASE("An honest candidate is correct and is timed", "[pipeline]") {
  v1::Assignment assignment = Assignment(Testcase("relu.cpp"));
  assignment.mutable_evaluate()->mutable_options()->set_skip_timing(false);
  assignment.mutable_evaluate()->mutable_options()->set_max_time_seconds(1);
  const v1::EvaluationResult result = Evaluate(std::move(assignment));
  INFO(result.DebugString());
  CHECK(result.verdict() == v1::VERDICT_CORRECT);
  CHECK(result.build().ok());
  CHECK(result.correctness().trials_passed() >= 2);
  REQUIRE(result.timing().baselines_size() == 1);
  CHECK(result.timing().baselines(0).speedup() > 0);
  CHECK(result.device().kind() == v1::DEVICE_KIND_CPU);
  CHECK(result.device().name() != "");
  CHECK(result.problem_sha256().size() == 64);
  CHECK(result.candidate_sha256().size() == 64);
  CHECK(result.grove_version() != "");
}

// relu.cpp against itself.
v1::Assignment Comparison(int replicas, double seconds) {
  v1::Assignment assignment = Assignment(Testcase("relu.cpp"));
  v1::EvaluateWork& work = *assignment.mutable_evaluate();
  *work.mutable_rival() = work.candidate();
  work.mutable_rival()->set_name("old.cpp");
  v1::EvaluationOptions& options = *work.mutable_options();
  options.set_skip_timing(false);
  options.set_max_time_seconds(seconds);
  options.set_replicas(replicas);
  options.add_baselines(v1::BASELINE_EAGER);
  options.add_baselines(v1::BASELINE_RIVAL);
  return assignment;
}

TEST_CASE("A comparison is timed in as many pairs of processes as are asked for, and is one result", "[pipeline]") {
  Farm& farm = Farm::Get();
  v1::Assignment assignment = Comparison(3, 0.9);
  assignment.mutable_evaluate()->mutable_options()->set_keep_samples(true);
  const v1::Lease lease = farm.Submit(std::move(assignment));
  CHECK(farm.AwaitDetail(lease, "replica 1 of 3: trial 2 of 2"));
  CHECK(farm.AwaitDetail(lease, "replica 3 of 3: trial 1 of 1"));
  const v1::EvaluationResult result = farm.Await(lease).evaluation();
  INFO(result.DebugString());
  CHECK(farm.Count(lease) == 1);
  REQUIRE(result.verdict() == v1::VERDICT_CORRECT);
  CHECK(result.rival().verdict() == v1::VERDICT_CORRECT);
  CHECK(result.rival().name() == "old.cpp");
  CHECK(result.correctness().trials_passed() >= 2);
  REQUIRE(result.timing().baselines_size() == 2);
  for (const v1::BaselineTiming& timing : result.timing().baselines()) {
    CHECK(timing.replicas() == 3);
    REQUIRE(timing.each_replica_size() == 3);
    int samples = 0;
    for (const v1::ReplicaTiming& each : timing.each_replica()) {
      // A third of ten, rounded up; pairs that are too short for the clock are missing from the second baseline.
      CHECK(each.samples() >= (timing.baseline() == v1::BASELINE_RIVAL ? 1 : 4));
      samples += each.samples();
    }
    CHECK(timing.samples() == samples);
    CHECK(timing.reference_seconds_size() == samples);
    CHECK(timing.comparison() != v1::COMPARISON_UNSPECIFIED);
  }
  CHECK_THAT(result.timing().method(), Catch::EndsWith("in 3 pairs of processes"));
  CHECK_THAT(result.reason(), Catch::Contains("samples in 3 pairs of processes; against the rival"));
  // Each stage has its seconds once.
  std::map<std::string, int> stages;
  for (const v1::StageTime& stage : result.stages()) ++stages[stage.stage()];
  for (const auto& [stage, count] : stages) {
    CAPTURE(stage);
    CHECK(count == 1);
  }
  CHECK(stages.contains("judge"));
  CHECK(stages.contains("rival"));
}

TEST_CASE("Who has nobody to be compared with is timed once, whatever it was asked for", "[pipeline]") {
  v1::Assignment assignment = Assignment(Testcase("relu.cpp"));
  assignment.mutable_evaluate()->mutable_options()->set_skip_timing(false);
  assignment.mutable_evaluate()->mutable_options()->set_max_time_seconds(0.5);
  assignment.mutable_evaluate()->mutable_options()->set_replicas(4);
  const v1::EvaluationResult alone = Evaluate(assignment);
  INFO(alone.DebugString());
  REQUIRE(alone.verdict() == v1::VERDICT_CORRECT);
  CHECK(alone.timing().baselines(0).replicas() == 0);
  CHECK(alone.timing().baselines(0).samples() >= 10);
  // A rival that does not build is none; one that is wrong is found in the first pair of processes.
  v1::Assignment broken = Comparison(4, 0.5);
  broken.mutable_evaluate()->mutable_rival()->set_source("#error no\n");
  const v1::EvaluationResult unbuilt = Evaluate(broken);
  INFO(unbuilt.DebugString());
  CHECK(unbuilt.verdict() == v1::VERDICT_CORRECT);
  CHECK(unbuilt.rival().verdict() == v1::VERDICT_BUILD_FAILED);
  CHECK(unbuilt.timing().baselines(0).samples() >= 10);
  v1::Assignment wrong = Comparison(4, 0.5);
  wrong.mutable_evaluate()->mutable_rival()->set_source(Testcase("wrong.cpp"));
  const v1::EvaluationResult against = Evaluate(wrong);
  CHECK(against.verdict() == v1::VERDICT_CORRECT);
  CHECK(against.rival().verdict() == v1::VERDICT_WRONG);
  CHECK(against.timing().baselines(0).replicas() == 0);
  CHECK_THAT(against.reason(), Catch::Contains("no figure against the rival"));
}

TEST_CASE("A comparison is cancelled in the middle of its pairs of processes", "[pipeline]") {
  Farm& farm = Farm::Get();
  const v1::Lease lease = farm.Submit(Comparison(16, 100));
  REQUIRE(farm.AwaitDetail(lease, "replica 2 of 16"));
  const auto begin = std::chrono::steady_clock::now();
  farm.pipeline().Cancel(lease);
  CHECK(farm.pipeline().Running().empty());
  CHECK(Evaluate(Assignment(Testcase("relu.cpp"))).verdict() == v1::VERDICT_CORRECT);
  CHECK(farm.Count(lease) == 0);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(60));
}

TEST_CASE("A profile that is asked for on a CPU is not to be had, and nothing else changes", "[pipeline]") {
  v1::Assignment assignment = Assignment(Testcase("relu.cpp"));
  assignment.mutable_evaluate()->mutable_options()->set_profile(true);
  const v1::EvaluationResult result = Evaluate(assignment);
  CHECK(result.verdict() == v1::VERDICT_CORRECT);
  CHECK_THAT(result.profile().unavailable(), Catch::Contains("no profiler for the CPU"));
  CHECK(result.profile().kernels().empty());
  CHECK(result.profile().instructions().empty());
  assignment.mutable_evaluate()->mutable_options()->set_profile(false);
  CHECK(!Evaluate(assignment).has_profile());
  // What is not correct is not profiled.
  v1::Assignment wrong = Assignment(Testcase("wrong.cpp"));
  wrong.mutable_evaluate()->mutable_options()->set_profile(true);
  CHECK(!Evaluate(wrong).has_profile());
}

struct Expected {
  const char* file;
  v1::Verdict verdict;
  const char* says;  // in the reason
};

TEST_CASE("Every hostile candidate gets its verdict and the next evaluation is unharmed", "[pipeline]") {
  const Expected expected = GENERATE(
      Expected{"wrong.cpp", v1::VERDICT_WRONG, ""}, Expected{"spin.cpp", v1::VERDICT_TIMED_OUT, "call_wall_seconds"},
      Expected{"spin_at_load.cpp", v1::VERDICT_TIMED_OUT, ""}, Expected{"segfault.cpp", v1::VERDICT_CRASHED, "SIGSEGV"},
      Expected{"out_of_bounds.cpp", v1::VERDICT_CRASHED, "SIGSEGV"},
      Expected{"abort.cpp", v1::VERDICT_CRASHED, "SIGABRT"}, Expected{"exit0.cpp", v1::VERDICT_CRASHED, "code 0"},
      Expected{"exit0_at_load.cpp", v1::VERDICT_CRASHED, "code 0"}, Expected{"throws.cpp", v1::VERDICT_CRASHED, ""},
      Expected{"returns_nonzero.cpp", v1::VERDICT_CRASHED, "7"},
      Expected{"fork_bomb.cpp", v1::VERDICT_LIMIT_EXCEEDED, "processes"},
      Expected{"thread_bomb.cpp", v1::VERDICT_LIMIT_EXCEEDED, "processes"},
      Expected{"memory_hog.cpp", v1::VERDICT_LIMIT_EXCEEDED, "memory_bytes"},
      Expected{"disk_filler.cpp", v1::VERDICT_LIMIT_EXCEEDED, "disk_bytes"},
      Expected{"log_flood.cpp", v1::VERDICT_LIMIT_EXCEEDED, "output_bytes"},
      Expected{"closes_channel.cpp", v1::VERDICT_CRASHED, "closed its channel"},
      Expected{"garbage_to_channel.cpp", v1::VERDICT_CRASHED, "protocol"},
      Expected{"signals_all.cpp", v1::VERDICT_CRASHED, "SIGKILL"},
      Expected{"stops_itself.cpp", v1::VERDICT_TIMED_OUT, "call_wall_seconds"},
      Expected{"missing_entry.cpp", v1::VERDICT_BUILD_FAILED, "no entry point"},
      Expected{"syntax_error.cpp", v1::VERDICT_BUILD_FAILED, "no_such_field"},
      Expected{"empty.cpp", v1::VERDICT_BUILD_FAILED, "empty"});
  CAPTURE(expected.file);
  static const bool built_before = Evaluate(Assignment(Testcase("relu.cpp"))).build().ok();
  REQUIRE(built_before);
  v1::Assignment assignment = Assignment(Testcase(expected.file));
  v1::Limits& limits = *assignment.mutable_evaluate()->mutable_options()->mutable_limits();
  if (std::string(expected.file) == "spin_at_load.cpp") limits.set_run_wall_seconds(3);
  if (std::string(expected.says) == "call_wall_seconds") limits.set_call_wall_seconds(3);
  const v1::EvaluationResult result = Evaluate(std::move(assignment));
  INFO(result.DebugString());
  CHECK(v1::Verdict_Name(result.verdict()) == v1::Verdict_Name(expected.verdict));
  CHECK_THAT(result.reason(), Catch::Contains(expected.says));
  CHECK_FALSE(result.has_timing());

  const v1::EvaluationResult next = Evaluate(Assignment(Testcase("relu.cpp")));
  INFO(next.DebugString());
  CHECK(next.verdict() == v1::VERDICT_CORRECT);
  CHECK(next.build().cached());
}

bool Wide(const v1::BaselineTiming& timing) { return timing.speedup_high() > 2 * timing.speedup_low(); }

// Asked again, a few times, where a busy machine left an interval that says nothing.
v1::EvaluationResult EvaluateUntilKnown(const v1::Assignment& assignment) {
  constexpr int kTries = 4;
  v1::EvaluationResult result;
  for (int i = 0; i < kTries; ++i) {
    result = Evaluate(assignment);
    if (result.verdict() != v1::VERDICT_CORRECT || result.timing().baselines_size() == 0) break;
    const v1::BaselineTiming& against = result.timing().baselines(0);
    if (!Wide(against)) break;
  }
  return result;
}

TEST_CASE("Nobody looks fast by other means than being fast", "[pipeline]") {
  // One thread with the C library's functions does this work slower than torch, or hardly faster: whoever is said to be
  // three times as fast has cheated.
  const auto [file, shape] = GENERATE(table<std::string, std::string>({
      {"computes_ahead.cpp", "256, 512"},
      {"slows_reference.cpp", "256, 512"},
      {"computes_once.cpp", "8, 128"},
      {"false_clock.cpp", "256, 512"},
      {"false_clock.py", "256, 2048"},
  }));
  CAPTURE(file);
  const bool python = file.substr(file.size() - 3) == ".py";
  v1::Assignment assignment =
      Assignment(Testcase(file), python ? v1::CANDIDATE_FORMAT_KERNELBENCH : v1::CANDIDATE_FORMAT_CPP);
  std::string problem = Testcase("transcendental.py");
  problem.replace(problem.find("256, 512"), 8, shape);
  assignment.mutable_evaluate()->mutable_problem()->set_source(problem);
  v1::EvaluationOptions& options = *assignment.mutable_evaluate()->mutable_options();
  options.set_skip_timing(false);
  options.set_min_samples(5);
  options.set_max_time_seconds(0.5);
  options.mutable_limits()->set_memory_bytes(int64_t{2} << 30);
  options.mutable_limits()->set_run_wall_seconds(60);
  const v1::EvaluationResult result = EvaluateUntilKnown(assignment);
  INFO(result.DebugString());
  if (result.verdict() == v1::VERDICT_CORRECT) {
    REQUIRE(result.timing().baselines_size() == 1);
    const bool held = result.timing().method().find("held") != std::string::npos;
    if (!held) WARN("no freezer here: a candidate can compute ahead");
    const v1::BaselineTiming& against = result.timing().baselines(0);
    // (What stays wide on a busy machine says little by its middle.)
    const double fast = Wide(against) ? against.speedup_low() : against.speedup();
    if (held || file.find("computes_ahead") == std::string::npos) CHECK(fast < 3);
  } else {
    // Threads that slow their own call too may leave nothing to measure.
    const bool named = result.verdict() == v1::VERDICT_CHEATED && result.fault().evidence() != "";
    // Who leaves the work out of some runs is found by its outputs, when one of those runs is compared first.
    const bool left_out = file == "false_clock.py" && result.verdict() == v1::VERDICT_WRONG;
    CHECK((named || left_out || result.verdict() == v1::VERDICT_UNMEASURABLE));
  }
}

TEST_CASE("Two equal programs are equally fast", "[pipeline]") {
  std::string twin = Testcase("transcendental.py");
  twin.replace(twin.find("class Model("), 12, "class ModelNew(");
  v1::Assignment assignment = Assignment(twin, v1::CANDIDATE_FORMAT_KERNELBENCH);
  assignment.mutable_evaluate()->mutable_problem()->set_source(Testcase("transcendental.py"));
  v1::EvaluationOptions& options = *assignment.mutable_evaluate()->mutable_options();
  options.set_skip_timing(false);
  options.set_max_time_seconds(1);
  options.mutable_limits()->set_memory_bytes(int64_t{4} << 30);
  options.mutable_limits()->set_run_wall_seconds(60);
  const v1::EvaluationResult result = EvaluateUntilKnown(assignment);
  INFO(result.DebugString());
  REQUIRE(result.verdict() == v1::VERDICT_CORRECT);
  // Wide, for machines under load; the figures of a quiet one are in docs/timing.md.
  const v1::BaselineTiming& against = result.timing().baselines(0);
  CHECK((Wide(against) ? against.speedup_high() : against.speedup()) > 0.5);
  CHECK((Wide(against) ? against.speedup_low() : against.speedup()) < 2);
}

TEST_CASE("A candidate that forges its own answers is never correct", "[pipeline]") {
  const v1::EvaluationResult result = Evaluate(Assignment(Testcase("forged_done.cpp")));
  INFO(result.DebugString());
  CHECK((result.verdict() == v1::VERDICT_WRONG || result.verdict() == v1::VERDICT_CRASHED));
}

TEST_CASE("A function of a library is not there, and the build's error says why", "[pipeline]") {
  const v1::EvaluationResult result =
      Evaluate(Assignment("#include <grove/kernel.h>\nextern \"C\" int cublasCreate_v2(void**);\n"
                          "GROVE_KERNEL(args) { (void)args; void* handle; return cublasCreate_v2(&handle); }\n"));
  INFO(result.DebugString());
  CHECK(result.verdict() == v1::VERDICT_BUILD_FAILED);
  CHECK_THAT(result.reason(), Catch::Contains("undefined symbol: cublasCreate_v2") &&
                                  Catch::Contains("linked with the compiler's own runtime alone"));
}

TEST_CASE("The CPU limit of a candidate has its own name", "[pipeline]") {
  v1::Assignment assignment = Assignment(Testcase("cpu_hog.cpp"));
  v1::Limits& limits = *assignment.mutable_evaluate()->mutable_options()->mutable_limits();
  limits.set_run_cpu_seconds(1);
  limits.set_call_wall_seconds(15);
  const v1::EvaluationResult result = Evaluate(std::move(assignment));
  INFO(result.DebugString());
  CHECK(result.verdict() == v1::VERDICT_LIMIT_EXCEEDED);
  CHECK(result.fault().limit() == "run_cpu_seconds");
  CHECK(result.fault().limit_set() == 1);
  CHECK(result.fault().limit_reached() >= 1);
}

TEST_CASE("A hanging candidate costs the next one no more than its limit and a second", "[pipeline]") {
  Evaluate(Assignment(Testcase("relu.cpp")));  // judge and cache are warm
  Farm& farm = Farm::Get();
  v1::Assignment hang = Assignment(Testcase("spin.cpp"));
  hang.mutable_evaluate()->mutable_options()->mutable_limits()->set_call_wall_seconds(1);
  Evaluate(hang);  // built
  const auto begin = std::chrono::steady_clock::now();
  const v1::Lease first = farm.Submit(hang);
  const v1::Lease second = farm.Submit(Assignment(Testcase("relu.cpp")));
  CHECK(farm.Await(first).evaluation().verdict() == v1::VERDICT_TIMED_OUT);
  CHECK(farm.Await(second).evaluation().verdict() == v1::VERDICT_CORRECT);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  // Limit 1 s, a second of grace, and the honest one's own check; machines under load get more.
  CHECK(seconds < 18);  // and less than the honest one's own limit
}

TEST_CASE("A Python candidate needs no build and is judged", "[pipeline]") {
  // A byte order mark, as editors on Windows write it, is no part of the program.
  const std::string source =
      "\xEF\xBB\xBFimport torch\nimport torch.nn as nn\n\n\nclass ModelNew(nn.Module):\n    def forward(self, x):\n"
      "        return torch.clamp(x, min=0)\n";
  v1::Assignment assignment = Assignment(source, v1::CANDIDATE_FORMAT_KERNELBENCH);
  v1::Limits& limits = *assignment.mutable_evaluate()->mutable_options()->mutable_limits();
  limits.set_memory_bytes(int64_t{4} << 30);
  limits.set_run_wall_seconds(100);
  limits.set_call_wall_seconds(30);
  const v1::EvaluationResult result = Evaluate(std::move(assignment));
  INFO(result.DebugString());
  CHECK(result.verdict() == v1::VERDICT_CORRECT);
}

TEST_CASE("A Python candidate's inline extension is built ahead and found by the candidate", "[pipeline]") {
  // With Python.h alone, so that the build takes a second and not torch's minute.
  const std::string source = R"py(
import os, tempfile
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load

CODE = r"""
#include <Python.h>
static PyObject* Relu(PyObject*, PyObject* args) {
  unsigned long long from, to, n;
  if (!PyArg_ParseTuple(args, "KKK", &from, &to, &n)) return nullptr;
  const float* x = reinterpret_cast<const float*>(from);
  float* y = reinterpret_cast<float*>(to);
  for (unsigned long long i = 0; i < n; ++i) y[i] = x[i] > 0 ? x[i] : 0;
  Py_RETURN_NONE;
}
static PyMethodDef methods[] = {{"relu", Relu, METH_VARARGS, ""}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "fast_relu", nullptr, -1, methods};
extern "C" __attribute__((visibility("default"))) PyObject* PyInit_fast_relu() { return PyModule_Create(&module); }
"""
path = os.path.join(tempfile.mkdtemp(), "fast_relu.cpp")
with open(path, "w") as file:
    file.write(CODE)
fast = load(name="fast_relu", sources=[path])


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        fast.relu(x.data_ptr(), y.data_ptr(), x.numel())
        return y
)py";
  v1::Assignment assignment = Assignment(source, v1::CANDIDATE_FORMAT_KERNELBENCH);
  v1::Limits& limits = *assignment.mutable_evaluate()->mutable_options()->mutable_limits();
  limits.set_memory_bytes(int64_t{4} << 30);
  limits.set_run_wall_seconds(100);
  limits.set_call_wall_seconds(30);
  const v1::EvaluationResult result = Evaluate(assignment);
  INFO(result.DebugString());
  CHECK(result.verdict() == v1::VERDICT_CORRECT);
  CHECK_FALSE(result.build().cached());
  CHECK(Evaluate(assignment).build().cached());
}

constexpr char kModelHead[] =
    "import torch\ncalls = 0\nclass Model(torch.nn.Module):\n  def forward(self, x): return torch.relu(x)\n"
    "def get_init_inputs(): return []\n";

TEST_CASE("A problem at fault is said to be so, and is no verdict", "[pipeline]") {
  const auto [source, says] = GENERATE(table<std::string, std::string>({
      {"def f(:\n", "not Python"},
      {"x = 1\n", "Model"},
      {"import no_such_package_here\n", "no_such_package_here"},
      {"raise ValueError('broken on purpose')\n", "broken on purpose"},
      // Seen when it is loaded, and only when the candidate's memory is filled.
      {absl::StrCat(kModelHead, "def get_inputs():\n  global calls\n  calls += 1\n  return [torch.rand(calls, 9)]\n"),
       "be given memory for them"},
      {absl::StrCat(kModelHead,
                    "def get_inputs():\n  global calls\n  calls += 1\n  return [torch.rand(5 + calls // 4, 9)]\n"),
       "be given memory for them"},
      // One shape when it is loaded, and another one ever after.
      {absl::StrCat(
           kModelHead,
           "def get_inputs():\n  global calls\n  calls += 1\n  return [torch.rand(5 if calls < 3 else 6, 9)]\n"),
       "than when the problem was loaded"},
      {"import torch\nclass Model(torch.nn.Module):\n  def __init__(self):\n    super().__init__()\n"
       "    self.register_buffer('mean', torch.zeros(100))\n  def forward(self, x):\n"
       "    self.mean.mul_(0.9).add_(x.mean(0) * 0.1)\n    return x - self.mean\n"
       "def get_inputs(): return [torch.randn(64, 100)]\ndef get_init_inputs(): return []\n",
       "different results when it is run twice"},
      {"import torch\nclass Model(torch.nn.Module):\n  def forward(self, x): return x[:0]\n"
       "def get_inputs(): return [torch.randn(5, 5)]\ndef get_init_inputs(): return []\n",
       "without elements"},
  }));
  CAPTURE(source);
  v1::Assignment assignment = Assignment(Testcase("relu.cpp"));
  assignment.mutable_evaluate()->mutable_problem()->set_source(source);
  Farm& farm = Farm::Get();
  const v1::WorkResult result = farm.Await(farm.Submit(std::move(assignment)));
  INFO(result.DebugString());
  CHECK(result.outcome_case() == v1::WorkResult::kProblemError);
  CHECK_THAT(result.problem_error(), Catch::Contains(says));
}

TEST_CASE("A problem that kills its judge becomes the problem's error after a few tries", "[pipeline]") {
  Farm& farm = Farm::Get();
  v1::WorkResult result;
  int infrastructure = 0;
  for (int i = 0; i < 5; ++i) {
    v1::Assignment assignment = Assignment(Testcase("relu.cpp"));
    assignment.mutable_evaluate()->mutable_problem()->set_source("import os\nos.kill(os.getpid(), 9)\n");
    result = farm.Await(farm.Submit(std::move(assignment)));
    if (result.outcome_case() == v1::WorkResult::kProblemError) break;
    CHECK(result.outcome_case() == v1::WorkResult::kInfrastructureFailure);
    ++infrastructure;
  }
  CHECK(infrastructure == 2);
  CHECK_THAT(result.problem_error(), Catch::Contains("SIGKILL"));
}

TEST_CASE("A problem is described", "[pipeline]") {
  v1::Assignment assignment;
  *assignment.mutable_describe()->mutable_problem() = Assignment("x").evaluate().problem();
  Farm& farm = Farm::Get();
  const v1::WorkResult result = farm.Await(farm.Submit(std::move(assignment)));
  INFO(result.DebugString());
  REQUIRE(result.has_description());
  CHECK(result.description().inputs_size() == 1);
  CHECK(result.description().outputs_size() == 1);
  CHECK(result.description().sha256().size() == 64);
  CHECK(result.description().device().kind() == v1::DEVICE_KIND_CPU);
}

TEST_CASE("What is cancelled reports nothing and frees the device at once", "[pipeline]") {
  Farm& farm = Farm::Get();
  v1::Assignment hang = Assignment(Testcase("spin.cpp"));
  v1::Limits& limits = *hang.mutable_evaluate()->mutable_options()->mutable_limits();
  limits.set_call_wall_seconds(100);
  limits.set_run_wall_seconds(150);
  const auto begin = std::chrono::steady_clock::now();
  const v1::Lease lease = farm.Submit(hang);
  REQUIRE(farm.AwaitStage(lease, "check"));
  farm.pipeline().Cancel(lease);
  CHECK(farm.pipeline().Running().empty());
  CHECK(Evaluate(Assignment(Testcase("relu.cpp"))).verdict() == v1::VERDICT_CORRECT);
  CHECK(farm.Count(lease) == 0);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(60));
}

TEST_CASE("Figures for metrics add up", "[pipeline]") {
  const auto slot = [](const PipelineStats& stats) {
    return std::map<std::string, double>(stats.slot_seconds.begin(), stats.slot_seconds.end());
  };
  const auto sum = [](const std::map<std::string, double>& seconds) {
    double all = 0;
    for (const auto& [state, one] : seconds) all += one;
    return all;
  };
  const auto before = slot(Farm::Get().pipeline().Stats());
  const absl::Time begin = absl::Now();
  const v1::EvaluationResult result = Evaluate(Assignment(Testcase("relu.cpp")));
  const PipelineStats stats = Farm::Get().pipeline().Stats();
  const double wall = absl::ToDoubleSeconds(absl::Now() - begin);
  // No time of the slot is without a name, and none is counted twice.
  const auto after = slot(stats);
  CHECK(sum(after) - sum(before) == Approx(wall).margin(0.05 + 0.05 * wall));
  CHECK(after.at("checking") > (before.contains("checking") ? before.at("checking") : 0.0));
  // From the worker's first sight of it to its verdict, every stage has a name.
  std::map<std::string, double> stages;
  for (const v1::StageTime& stage : result.stages()) stages[stage.stage()] += stage.seconds();
  for (const char* stage :
       {"build_wait", "build", "device_wait", "start", "judge", "end", "hello", "inputs", "open", "check"}) {
    CAPTURE(stage);
    CHECK(stages.contains(stage));
  }
  CHECK_FALSE(stages.contains("prepare"));
  CHECK(stages["hello"] + stages["inputs"] + stages["open"] + stages["check"] <= stages["judge"] + 0.01);
  int64_t verdicts = 0;
  for (const auto& [name, count] : stats.verdicts_total) verdicts += count;
  CHECK(verdicts >= 1);
  CHECK(stats.builds_total == stats.build_cache_hits_total + stats.build_cache_misses_total);
  CHECK(stats.busy_seconds_total > 0);
  CHECK_FALSE(stats.sandbox_layers.empty());
}

TEST_CASE("A worker without its programs says what to do", "[pipeline]") {
  PipelineOptions options = Farm::Get().options();
  options.paths.libexec_dir = "/nonexistent";
  auto started = Pipeline::Start(options, nullptr, nullptr);
  REQUIRE_FALSE(started.ok());
  CHECK_THAT(std::string(started.status().message()), Catch::Contains("grove-worker setup"));
}

TEST_CASE("A device that is not there is said with those that are", "[pipeline]") {
  PipelineOptions options = Farm::Get().options();
  options.device.set_kind(v1::DEVICE_KIND_CUDA);
  options.device.set_index(42);
  auto started = Pipeline::Start(options, nullptr, nullptr);
  REQUIRE_FALSE(started.ok());
  CHECK_THAT(std::string(started.status().message()), Catch::Contains("cpu"));
}

}  // namespace
}  // namespace grove::worker
