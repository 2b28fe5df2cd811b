// A device that is not well, through the whole pipeline: no verdict comes from it, it says so, and it comes back.
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/files.h"
#include "worker/pipeline/pipeline.h"

namespace grove::worker {
namespace {

std::string Testcase(const std::string& name) {
  auto text = ReadFile(absl::StrCat(GROVE_TESTCASES, "/", name), 1 << 20);
  REQUIRE(text.ok());
  return *text;
}

// A pipeline on the CPU whose device is as the test says.
class Ward {
 public:
  Ward() {
    char folder[] = "/tmp/grove-quarantine-test-XXXXXX";
    REQUIRE(mkdtemp(folder) != nullptr);
    folder_ = folder;
    PipelineOptions options;
    options.paths.libexec_dir = GROVE_LIBEXEC;
    options.paths.include_dir = GROVE_INCLUDE;
    options.paths.state_dir = folder_;
    options.device.set_kind(v1::DEVICE_KIND_CPU);
    HealthProbes probes;
    probes.canary = [this] {
      sandbox::CanaryOutcome outcome;
      outcome.passed = well;
      outcome.what = "the processor computed a known sequence wrongly";
      return outcome;
    };
    probes.xids = [this](absl::Duration) {
      std::lock_guard<std::mutex> lock(mutex_);
      return std::exchange(xids_, {});
    };
    probes.listening = [this] {
      std::lock_guard<std::mutex> lock(mutex_);
      return listening_;
    };
    probes.foreign = [this]() -> std::optional<int> {
      ++asked_for_others;
      return others.load() < 0 ? std::nullopt : std::optional(others.load());
    };
    probes.now = [this] { return absl::Now() + absl::Seconds(ahead.load()); };
    probes.sleep = [](absl::Duration) {};
    options.health_probes = probes;
    options.slow_death = absl::Seconds(2);
    auto started = Pipeline::Start(
        options,
        [this](const v1::WorkerProgress& progress) {
          if (progress.stage() != "check") return;
          if (const int xid = xid_while_checking.exchange(0); xid != 0) Report(xid);
        },
        [this](v1::WorkResult result) {
          std::lock_guard<std::mutex> lock(mutex_);
          // As the coordinator would be told: the state goes ahead of the result.
          states_[result.lease().work()] = pipeline_->Stats().slot_state;
          results_[result.lease().work()] = std::move(result);
          changed_.notify_all();
        });
    INFO(started.status());
    REQUIRE(started.ok());
    pipeline_ = *std::move(started);
  }
  ~Ward() {
    pipeline_.reset();
    std::filesystem::remove_all(folder_);
  }

  v1::WorkResult Evaluate(const std::string& file, bool timed = false) {
    return Await(SubmitSource(Testcase(file), timed));
  }
  // The work's name.
  std::string SubmitSource(const std::string& source, bool timed = false, int min_samples = 0, int max_samples = 0) {
    static int next = 0;
    v1::Assignment assignment;
    assignment.mutable_lease()->set_work(absl::StrCat("work-", next++));
    assignment.mutable_lease()->set_attempt(1);
    v1::EvaluateWork& work = *assignment.mutable_evaluate();
    work.mutable_problem()->set_name("relu");
    work.mutable_problem()->set_format(v1::PROBLEM_FORMAT_KERNELBENCH);
    work.mutable_problem()->set_source(Testcase("relu.py"));
    work.mutable_candidate()->set_format(v1::CANDIDATE_FORMAT_CPP);
    work.mutable_candidate()->set_source(source);
    work.mutable_options()->set_trials(1);
    work.mutable_options()->set_skip_timing(!timed);
    work.mutable_options()->set_min_samples(min_samples);
    work.mutable_options()->set_max_samples(max_samples);
    if (min_samples > 0) work.mutable_options()->set_max_time_seconds(0.05);
    const std::string id = assignment.lease().work();
    pipeline_->Submit(std::move(assignment));
    return id;
  }
  v1::WorkResult Await(const std::string& id) {
    std::unique_lock<std::mutex> lock(mutex_);
    REQUIRE(changed_.wait_for(lock, std::chrono::seconds(200), [&] { return results_.count(id) > 0; }));
    last_state = states_[id];
    return results_[id];
  }
  void Report(int xid) {
    std::lock_guard<std::mutex> lock(mutex_);
    xids_.push_back({xid, absl::Now()});
  }
  void Listening(const absl::Status& status) {
    std::lock_guard<std::mutex> lock(mutex_);
    listening_ = status;
  }
  PipelineStats Stats() { return pipeline_->Stats(); }
  // Without any work: by the pipeline's own clock.
  bool AwaitState(const std::string& state) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(100);
    while (Stats().slot_state != state) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return true;
  }

  std::atomic<bool> well{true};
  std::atomic<int> others{-1}, asked_for_others{0};  // processes on the device; below 0: it is not known
  std::atomic<int> xid_while_checking{0};            // comes once, in the middle of the next evaluation
  std::atomic<int> ahead{0};                         // seconds that the probes' clock is ahead
  std::string last_state;

 private:
  std::string folder_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, v1::WorkResult> results_;
  std::map<std::string, std::string> states_;
  std::vector<device::XidEvent> xids_;
  absl::Status listening_;
  std::unique_ptr<Pipeline> pipeline_;
};

TEST_CASE("A device that is not well gives no verdicts, says so, and comes back by itself", "[pipeline][health]") {
  Ward ward;
  CHECK(ward.Evaluate("relu.cpp").evaluation().verdict() == v1::VERDICT_CORRECT);
  CHECK(ward.Stats().health == "");

  // A fault, and the device is well afterwards: the verdict is the candidate's.
  CHECK(ward.Evaluate("segfault.cpp").evaluation().verdict() == v1::VERDICT_CRASHED);
  CHECK_THAT(ward.Stats().health, Catch::Contains("VERDICT_CRASHED") && Catch::Contains("passed its test"));
  CHECK(ward.Stats().slot_state != "quarantined");

  // The same fault on a device that then computes wrongly: no verdict.
  ward.well = false;
  const v1::WorkResult crashed = ward.Evaluate("segfault.cpp");
  CHECK(crashed.outcome_case() == v1::WorkResult::kInfrastructureFailure);
  CHECK_THAT(crashed.infrastructure_failure(),
             Catch::Contains("quarantined") && Catch::Contains("a known sequence wrongly"));
  CHECK(ward.last_state == "quarantined");
  CHECK(ward.Stats().health_counts.quarantines == 1);
  CHECK(ward.Stats().infrastructure_failures_total == 1);

  // What it is given all the same goes back at once, untouched.
  const v1::WorkResult next = ward.Evaluate("relu.cpp");
  CHECK(next.outcome_case() == v1::WorkResult::kInfrastructureFailure);
  CHECK(ward.last_state == "quarantined");

  // Well again: no work has to come for it to notice.
  ward.well = true;
  CHECK(ward.AwaitState("idle"));
  CHECK(ward.Evaluate("relu.cpp").evaluation().verdict() == v1::VERDICT_CORRECT);
  CHECK_THAT(ward.Stats().health, Catch::StartsWith("was quarantined"));
}

TEST_CASE("An error that the device reports is no verdict, one of the application's is named in it",
          "[pipeline][health]") {
  Ward ward;
  CHECK(ward.Evaluate("relu.cpp").evaluation().verdict() == v1::VERDICT_CORRECT);
  // While idle: what comes next does not run on it.
  ward.Report(79);
  const v1::WorkResult idle = ward.Evaluate("relu.cpp");
  CHECK(idle.outcome_case() == v1::WorkResult::kInfrastructureFailure);
  CHECK_THAT(idle.infrastructure_failure(), Catch::Contains("Xid 79 (GPU has fallen off the bus)"));
  CHECK(ward.last_state == "quarantined");
  CHECK(ward.AwaitState("idle"));
  CHECK(ward.Stats().health_counts.xids.size() == 1);
  // In the middle of an evaluation that would be correct: it is made again, and gets no verdict from this device.
  ward.xid_while_checking = 79;
  const v1::WorkResult struck = ward.Evaluate("relu.cpp");
  CHECK(ward.xid_while_checking == 0);
  CHECK(struck.outcome_case() == v1::WorkResult::kInfrastructureFailure);
  CHECK_THAT(struck.infrastructure_failure(),
             Catch::Contains("quarantined") && Catch::Contains("Xid 79 (GPU has fallen off the bus)"));
  CHECK(ward.last_state == "quarantined");
  CHECK(ward.Stats().health_counts.quarantines == 2);
  CHECK(ward.AwaitState("idle"));
  // One of the application's in the middle of a crash is named in its verdict.
  ward.xid_while_checking = 31;
  const v1::WorkResult crashed = ward.Evaluate("segfault.cpp");
  CHECK(crashed.evaluation().verdict() == v1::VERDICT_CRASHED);
  CHECK_THAT(crashed.evaluation().reason(), Catch::Contains("Xid 31"));
  CHECK(ward.last_state != "quarantined");
  // A notice is counted and disturbs nobody.
  ward.Report(63);
  CHECK(ward.Evaluate("relu.cpp").evaluation().verdict() == v1::VERDICT_CORRECT);
}

TEST_CASE("Nobody gets around the device's test by what it says of itself", "[pipeline][health]") {
  // Whatever it did before: this is what a candidate says that could not be loaded.
  const std::string source = R"(#include <grove/kernel.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
extern "C" int grove_kernel(const grove_args*) {
  const char text[] = "{\"type\":\"fail\",\"kind\":\"load_error\",\"message\":\"no such symbol\"}";
  const uint32_t size = sizeof text - 1;
  char frame[4 + sizeof text];
  memcpy(frame, &size, 4);
  memcpy(frame + 4, text, sizeof text);
  (void)!write(3, frame, 4 + size);
  for (;;) pause();
}
)";
  Ward ward;
  CHECK(ward.Evaluate("relu.cpp").evaluation().verdict() == v1::VERDICT_CORRECT);
  const int64_t before = ward.Stats().health_counts.canaries;
  const v1::WorkResult said = ward.Await(ward.SubmitSource(source));
  CHECK(said.evaluation().verdict() == v1::VERDICT_BUILD_FAILED);
  CHECK(ward.Stats().health_counts.canaries == before + 1);
  ward.well = false;
  const v1::WorkResult next = ward.Await(ward.SubmitSource(source));
  CHECK(next.outcome_case() == v1::WorkResult::kInfrastructureFailure);
  CHECK(ward.last_state == "quarantined");
}

TEST_CASE("A timing that cannot be finished is tried once more by itself", "[pipeline][health]") {
  Ward ward;
  // So many pairs there are not in that time.
  const v1::WorkResult result =
      ward.Await(ward.SubmitSource(Testcase("relu.cpp"), /*timed=*/true, /*min_samples=*/5000, /*max_samples=*/5000));
  REQUIRE(result.evaluation().verdict() == v1::VERDICT_UNMEASURABLE);
  CHECK_THAT(result.evaluation().reason(), Catch::StartsWith("in two attempts: only "));
  CHECK(ward.Evaluate("relu.cpp", /*timed=*/true).evaluation().timing().reruns() == 0);
}

// A process below this one, by its name.
pid_t Find(const std::string& name, std::chrono::seconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < deadline) {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::ifstream file(entry.path() / "comm");
      int pid = 0;
      if (std::string comm; file >> comm && comm == name && absl::SimpleAtoi(entry.path().filename().string(), &pid)) {
        return pid;
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return -1;
}

TEST_CASE("A candidate that cannot be killed takes its device out of use until it is gone", "[pipeline][health]") {
  // Its child cannot end before a tracer of ours has let go of it: nothing that SIGKILL could do.
  const std::string name = absl::StrCat("stuck-", getpid() % 100000);
  const std::string source = absl::StrCat(R"(#include <grove/kernel.h>
#include <sys/prctl.h>
#include <unistd.h>
extern "C" int grove_kernel(const grove_args*) {
  if (fork() == 0) {
    prctl(PR_SET_NAME, ")",
                                          name, R"(");
    for (;;) pause();
  }
  sleep(60);
  _exit(3);
}
)");
  Ward ward;
  CHECK(ward.Evaluate("relu.cpp").evaluation().verdict() == v1::VERDICT_CORRECT);
  const std::string work = ward.SubmitSource(source);
  const pid_t child = Find(name, std::chrono::seconds(60));
  REQUIRE(child > 0);
  if (ptrace(PTRACE_SEIZE, child, nullptr, nullptr) != 0) {
    REQUIRE(errno == EPERM);
    WARN("skipped: processes may not be traced here");
    return;
  }
  const v1::WorkResult stuck = ward.Await(work);
  INFO(stuck.DebugString());
  CHECK(stuck.outcome_case() == v1::WorkResult::kInfrastructureFailure);
  CHECK_THAT(stuck.infrastructure_failure(), Catch::Contains("did not die after SIGKILL"));
  CHECK(ward.last_state == "quarantined");
  // As long as it is there the canary alone does not help.
  ward.ahead = 3600;
  const v1::WorkResult next = ward.Evaluate("relu.cpp");
  CHECK(next.outcome_case() == v1::WorkResult::kInfrastructureFailure);
  int status = 0;
  CHECK(waitpid(child, &status, __WALL) == child);  // the tracer lets go
  v1::WorkResult after;
  // Whoever inherits it has to reap it first.
  for (const absl::Time until = absl::Now() + absl::Seconds(60); !after.has_evaluation() && absl::Now() < until;) {
    ward.ahead += 3600;
    after = ward.Evaluate("relu.cpp");
    if (!after.has_evaluation()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  CHECK(after.evaluation().verdict() == v1::VERDICT_CORRECT);
  CHECK(ward.last_state != "quarantined");
  CHECK(ward.Stats().health_counts.quarantines == 1);
}

TEST_CASE("Processes of others on the device are in a timed result, and counted", "[pipeline][health]") {
  Ward ward;
  ward.others = 2;
  CHECK(ward.Evaluate("relu.cpp").evaluation().verdict() == v1::VERDICT_CORRECT);
  CHECK(ward.asked_for_others == 0);
  const v1::WorkResult shared = ward.Evaluate("relu.cpp", /*timed=*/true);
  REQUIRE(shared.evaluation().verdict() == v1::VERDICT_CORRECT);
  CHECK(ward.asked_for_others == 2);
  CHECK(shared.evaluation().timing().device_state().foreign_processes() == 2);
  CHECK(ward.Stats().shared_timings_total == 1);
  ward.others = 0;
  const v1::WorkResult alone = ward.Evaluate("relu.cpp", /*timed=*/true);
  CHECK(alone.evaluation().timing().device_state().has_foreign_processes());
  CHECK(alone.evaluation().timing().device_state().foreign_processes() == 0);
  // What is not known is not said.
  ward.others = -1;
  CHECK_FALSE(ward.Evaluate("relu.cpp", /*timed=*/true).evaluation().timing().device_state().has_foreign_processes());
  CHECK(ward.Stats().shared_timings_total == 1);
}

TEST_CASE("A worker that no longer hears of Xids says so while it works on", "[pipeline][health]") {
  Ward ward;
  CHECK(ward.Stats().health == "");
  ward.Listening(absl::DeadlineExceededError("the driver hangs"));
  CHECK(ward.Evaluate("relu.cpp").evaluation().verdict() == v1::VERDICT_CORRECT);
  CHECK_THAT(ward.Stats().health, Catch::Contains("(Xids) are not seen: the driver hangs"));
  CHECK(ward.Stats().health_counts.deaf);
  ward.Listening(absl::OkStatus());
  CHECK(ward.Evaluate("relu.cpp").evaluation().verdict() == v1::VERDICT_CORRECT);
  CHECK(ward.Stats().health == "");
  CHECK_FALSE(ward.Stats().health_counts.deaf);
}

}  // namespace
}  // namespace grove::worker
