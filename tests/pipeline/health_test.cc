#include "worker/pipeline/health.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <deque>

#include "worker/pipeline/verdict.h"

namespace grove::worker {
namespace {

// A device whose canaries and Xids come from the test, and a clock that stands until it is moved.
struct Sick {
  std::deque<sandbox::CanaryOutcome> canaries;  // the next ones; then they pass
  std::vector<device::XidEvent> xids;
  absl::Status listening;
  absl::Time now = absl::FromUnixSeconds(1'700'000'000);
  absl::Duration slept;
  int asked = 0;

  static sandbox::CanaryOutcome Passed(double seconds = 0.001) {
    sandbox::CanaryOutcome outcome;
    outcome.passed = true;
    outcome.seconds = seconds;
    return outcome;
  }
  static sandbox::CanaryOutcome Failed(const std::string& what = "thread 7 computed a wrong value") {
    sandbox::CanaryOutcome outcome;
    outcome.what = what;
    return outcome;
  }
  HealthProbes Probes() {
    HealthProbes probes;
    probes.canary = [this] {
      ++asked;
      if (canaries.empty()) return Passed();
      sandbox::CanaryOutcome next = canaries.front();
      canaries.pop_front();
      return next;
    };
    probes.xids = [this](absl::Duration) { return std::exchange(xids, {}); };
    probes.listening = [this] { return listening; };
    probes.now = [this] { return now; };
    probes.sleep = [this](absl::Duration pause) { slept += pause; };
    probes.slowdown = 4;
    return probes;
  }
};

TEST_CASE("A device that does not compute what it should is not taken into service", "[health]") {
  Sick sick;
  DeviceHealth health(sick.Probes());
  const absl::Status status = health.Begin(Sick::Failed());
  CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
  CHECK_THAT(std::string(status.message()), Catch::Contains("thread 7"));
}

TEST_CASE("A canary that passes after a fault leaves the device in service, and the fault is told", "[health]") {
  Sick sick;
  DeviceHealth health(sick.Probes());
  REQUIRE(health.Begin(Sick::Passed()).ok());
  CHECK(health.Text() == "");
  CHECK(health.PassesAfter("VERDICT_CRASHED"));
  CHECK_FALSE(health.Quarantined());
  CHECK_THAT(health.Text(), Catch::Contains("VERDICT_CRASHED") && Catch::Contains("passed its test"));
  CHECK(health.NextTry() == absl::InfiniteFuture());
  CHECK(health.Snapshot().faults == 1);
}

TEST_CASE("One failed canary is forgiven when the next passes, three in a row are not", "[health]") {
  Sick sick;
  DeviceHealth health(sick.Probes());
  REQUIRE(health.Begin(Sick::Passed()).ok());
  sick.canaries = {Sick::Failed(), Sick::Failed()};
  CHECK(health.PassesAfter("VERDICT_CRASHED"));
  CHECK(sick.asked == 3);
  CHECK(sick.slept > absl::ZeroDuration());
  sick.canaries = {Sick::Failed(), Sick::Failed(), Sick::Failed()};
  CHECK_FALSE(health.PassesAfter("VERDICT_TIMED_OUT"));
  CHECK(health.Quarantined());
  CHECK_THAT(health.Text(), Catch::StartsWith("quarantined at 2023-11-14T") && Catch::Contains("VERDICT_TIMED_OUT") &&
                                Catch::Contains("thread 7 computed a wrong value"));
  CHECK(health.Snapshot().quarantines == 1);
  CHECK(health.Snapshot().canary_failures == 5);
}

TEST_CASE("A canary that computes right but far too slowly has failed", "[health]") {
  Sick sick;
  DeviceHealth health(sick.Probes());
  REQUIRE(health.Begin(Sick::Passed(0.001)).ok());
  sick.canaries = {Sick::Passed(0.0039)};
  CHECK(health.PassesAfter("a fault"));
  sick.canaries = {Sick::Passed(0.0041), Sick::Passed(0.0041), Sick::Passed(0.0041)};
  CHECK_FALSE(health.PassesAfter("a fault"));
  CHECK_THAT(health.Text(), Catch::Contains("4.1 ms, 1 ms when the worker started"));
}

TEST_CASE("A quarantined device is tried again with growing pauses until its canary passes", "[health]") {
  Sick sick;
  DeviceHealth health(sick.Probes());
  REQUIRE(health.Begin(Sick::Passed()).ok());
  health.Quarantine("it reported Xid 48");
  const absl::Time entered = sick.now;
  CHECK(health.NextTry() == entered + kFirstRetry);
  const int before = sick.asked;
  CHECK_FALSE(health.Retry());  // not yet
  CHECK(sick.asked == before);
  absl::Duration last = absl::ZeroDuration();
  for (int i = 0; i < 12; ++i) {
    sick.now = health.NextTry();
    sick.canaries = {Sick::Failed()};
    CHECK_FALSE(health.Retry());
    const absl::Duration pause = health.NextTry() - sick.now;
    CHECK(pause >= last);
    CHECK(pause <= kLongestRetry);
    last = pause;
  }
  CHECK(last == kLongestRetry);
  sick.now = health.NextTry();
  CHECK(health.Retry());
  CHECK_FALSE(health.Quarantined());
  CHECK(health.NextTry() == absl::InfiniteFuture());
  CHECK_THAT(health.Text(), Catch::Contains("Xid 48") && Catch::Contains("passed its test"));
}

TEST_CASE("A device that reports another error of its own while it is tried stays out", "[health]") {
  Sick sick;
  DeviceHealth health(sick.Probes());
  REQUIRE(health.Begin(Sick::Passed()).ok());
  health.Quarantine("it reported Xid 94");
  sick.now = health.NextTry();
  sick.xids = {{95, sick.now}};
  CHECK_FALSE(health.Retry());
  sick.now = health.NextTry();
  CHECK(health.Retry());
}

TEST_CASE("A device that keeps coming back stays out until the worker is restarted", "[health]") {
  Sick sick;
  DeviceHealth health(sick.Probes());
  REQUIRE(health.Begin(Sick::Passed()).ok());
  for (int i = 0; i < kMaxQuarantinesPerHour; ++i) {
    health.Quarantine("it reported Xid 94");
    sick.now = health.NextTry();
    REQUIRE(health.Retry());
  }
  health.Quarantine("it reported Xid 94");
  CHECK(health.Quarantined());
  CHECK(health.NextTry() == absl::InfiniteFuture());
  CHECK_THAT(health.Text(), Catch::Contains("restarted"));
  sick.now += absl::Hours(24);
  CHECK_FALSE(health.Retry());
  // The same number of times over a longer while is something else.
  DeviceHealth other(sick.Probes());
  REQUIRE(other.Begin(Sick::Passed()).ok());
  for (int i = 0; i < 3 * kMaxQuarantinesPerHour; ++i) {
    other.Quarantine("it reported Xid 94");
    sick.now += absl::Minutes(20);
    REQUIRE(other.Retry());
  }
}

TEST_CASE("A process that did not die keeps the device out until it is gone", "[health]") {
  Sick sick;
  DeviceHealth health(sick.Probes());
  REQUIRE(health.Begin(Sick::Passed()).ok());
  // A pidfd that is not readable is a process that lives; one end of a pipe is as good.
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  health.QuarantineFor(std::make_shared<sandbox::Leftover>(-1, ends[0], -1, 4711), "process 4711 did not die");
  sick.now = health.NextTry();
  const int before = sick.asked;
  CHECK_FALSE(health.Retry());
  CHECK(sick.asked == before);  // the canary would say nothing about it
  close(ends[1]);
  sick.now = health.NextTry();
  CHECK(health.Retry());
}

TEST_CASE("That no Xids come is told beside all else, as long as it lasts", "[health]") {
  Sick sick;
  DeviceHealth health(sick.Probes());
  REQUIRE(health.Begin(Sick::Passed()).ok());
  sick.listening = absl::UnavailableError("NVML: nvmlEventSetWait: error (999)");
  health.TakeXids(false);
  CHECK(health.Text() == "errors of the GPU (Xids) are not seen: NVML: nvmlEventSetWait: error (999)");
  CHECK(health.Snapshot().deaf);
  // It is no reason to give no verdicts: the canary still tells.
  CHECK_FALSE(health.Quarantined());
  CHECK(health.PassesAfter("VERDICT_CRASHED"));
  CHECK_THAT(health.Text(), Catch::StartsWith("last fault") && Catch::Contains("; errors of the GPU (Xids) are not"));
  sick.listening = absl::OkStatus();
  health.TakeXids(false);
  CHECK_FALSE(health.Snapshot().deaf);
  CHECK_THAT(health.Text(), !Catch::Contains("Xids"));
}

TEST_CASE("Xids are counted and sorted by whose they are", "[health]") {
  Sick sick;
  DeviceHealth health(sick.Probes());
  REQUIRE(health.Begin(Sick::Passed()).ok());
  sick.xids = {{31, sick.now}, {45, sick.now}, {31, sick.now}, {63, sick.now}, {94, sick.now}};
  const XidFindings findings = health.TakeXids(true);
  CHECK(findings.application == std::vector<int>{31, 45});
  CHECK(findings.device == std::vector<int>{94});
  CHECK(findings.notices == std::vector<int>{63});
  CHECK(findings.Text().rfind("Xid 94 (contained memory error), Xid 31", 0) == 0);
  int64_t of_31 = 0;
  for (const auto& [xid, count] : health.Snapshot().xids) of_31 += xid == 31 ? count : 0;
  CHECK(of_31 == 2);
  CHECK(health.TakeXids(false).Text() == "");
}

TEST_CASE("Others on the device are told of what was timed, and where it could not be timed", "[health]") {
  v1::EvaluationResult timed;
  timed.set_verdict(v1::VERDICT_CORRECT);
  timed.mutable_timing()->set_method("duet");
  MergeForeign(0, &timed);
  CHECK(timed.timing().device_state().has_foreign_processes());
  MergeForeign(3, &timed);
  CHECK(timed.timing().device_state().foreign_processes() == 3);
  CHECK(timed.reason() == "");
  v1::EvaluationResult unmeasurable;
  unmeasurable.set_verdict(v1::VERDICT_UNMEASURABLE);
  unmeasurable.set_reason("the GPU has other work");
  MergeForeign(0, &unmeasurable);
  CHECK(unmeasurable.reason() == "the GPU has other work");
  MergeForeign(1, &unmeasurable);
  CHECK(unmeasurable.reason() == "the GPU has other work; 1 process of others held the device");
  CHECK_FALSE(unmeasurable.has_timing());
  v1::EvaluationResult wrong;
  wrong.set_verdict(v1::VERDICT_WRONG);
  MergeForeign(1, &wrong);
  CHECK(wrong.reason() == "");
}

TEST_CASE("An application's Xid is named in the verdict that it explains and in no other", "[health]") {
  XidFindings xids;
  xids.application = {31};
  v1::EvaluationResult crashed;
  crashed.set_verdict(v1::VERDICT_CRASHED);
  crashed.set_reason("CUDA error");
  crashed.mutable_fault()->set_cuda_error("cudaErrorIllegalAddress");
  MergeXids(xids, &crashed);
  CHECK(crashed.fault().cuda_error() == "cudaErrorIllegalAddress; Xid 31 (GPU memory page fault)");
  CHECK(crashed.reason() == "CUDA error; Xid 31 (GPU memory page fault)");
  v1::EvaluationResult correct;
  correct.set_verdict(v1::VERDICT_CORRECT);
  MergeXids(xids, &correct);
  CHECK_FALSE(correct.has_fault());
}

}  // namespace
}  // namespace grove::worker
