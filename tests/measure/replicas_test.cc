#include "common/measure/replicas.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "absl/strings/match.h"

namespace grove::measure {
namespace {

// A replica that found this logarithm of the ratio, known to 95 % within +- half.
v1::TimingReport Replica(double log_ratio, double half, v1::Baseline baseline = v1::BASELINE_RIVAL) {
  v1::TimingReport timing;
  v1::BaselineTiming* one = timing.add_baselines();
  one->set_baseline(baseline);
  one->set_speedup(std::exp(log_ratio));
  one->set_speedup_low(std::exp(log_ratio - half));
  one->set_speedup_high(std::exp(log_ratio + half));
  one->set_reference_median_seconds(1e-4 * std::exp(log_ratio));
  one->set_candidate_median_seconds(1e-4);
  one->set_samples(10);
  return timing;
}

TEST_CASE("Student's quantiles are those of the tables") {
  const auto [degrees, quantile] = GENERATE(table<int, double>({{1, 12.7062},
                                                                {2, 4.3027},
                                                                {3, 3.1824},
                                                                {4, 2.7764},
                                                                {7, 2.3646},
                                                                {15, 2.1314},
                                                                {16, 2.1199},
                                                                {20, 2.0860},
                                                                {30, 2.0423},
                                                                {120, 1.9799},
                                                                {1'000'000, 1.9600}}));
  CAPTURE(degrees);
  CHECK(StudentQuantile(degrees) == Approx(quantile).margin(1.5e-4));
}

TEST_CASE("No message names fewer replicas than one or more than there may be") {
  v1::EvaluationOptions options;
  CHECK(ReplicasOf(options) == 1);
  options.set_replicas(-3);
  CHECK(ReplicasOf(options) == 1);
  options.set_replicas(4);
  CHECK(ReplicasOf(options) == 4);
  options.set_replicas(1000);
  CHECK(ReplicasOf(options) == kMostReplicas);
}

TEST_CASE("One replica stays as it is") {
  v1::TimingReport one = Replica(0.01, 0.004);
  one.set_method("duet");
  CHECK(CombineReplicas({one}).SerializeAsString() == one.SerializeAsString());
}

TEST_CASE("The interval is Student's over the replicas' logarithms") {
  const v1::TimingReport timing =
      CombineReplicas({Replica(0.01, 1e-4), Replica(0.02, 1e-4), Replica(0.03, 1e-4), Replica(0.04, 1e-4)});
  REQUIRE(timing.baselines_size() == 1);
  const v1::BaselineTiming& one = timing.baselines(0);
  // Mean 0.025; deviation sqrt(5 / 3) / 100 over sqrt(4), times 3.1824.
  const double half = 3.1824 * std::sqrt(5.0 / 3) / 100 / 2;
  CHECK(std::log(one.speedup()) == Approx(0.025));
  CHECK(std::log(one.speedup_low()) == Approx(0.025 - half));
  CHECK(std::log(one.speedup_high()) == Approx(0.025 + half));
  CHECK(one.replicas() == 4);
  CHECK(one.samples() == 40);
  CHECK(one.candidate_median_seconds() == Approx(1e-4));
  CHECK(one.reference_median_seconds() == Approx(1e-4 * std::exp(0.025)));
  REQUIRE(one.each_replica_size() == 4);
  CHECK(std::log(one.each_replica(2).speedup()) == Approx(0.03));
  CHECK(one.each_replica(2).samples() == 10);
}

TEST_CASE("Replicas that happen to agree are no surer than each of them is") {
  const v1::TimingReport timing =
      CombineReplicas({Replica(0.02, 0.004), Replica(0.02, 0.004), Replica(0.02, 0.004), Replica(0.02, 0.004)});
  const v1::BaselineTiming& one = timing.baselines(0);
  CHECK(std::log(one.speedup_low()) == Approx(0.02 - 0.002));
  CHECK(std::log(one.speedup_high()) == Approx(0.02 + 0.002));
}

TEST_CASE("Every baseline is combined, and one that a replica could not time has no figure") {
  std::vector<v1::TimingReport> replicas;
  for (int i = 0; i < 3; ++i) {
    v1::TimingReport timing = Replica(0.7, 0.01, v1::BASELINE_EAGER);
    timing.MergeFrom(Replica(0.01 * i, 0.004));
    timing.MergeFrom(Replica(0.2, 0.004, v1::BASELINE_COMPILE));
    if (i == 1) {
      timing.mutable_baselines(2)->Clear();
      timing.mutable_baselines(2)->set_baseline(v1::BASELINE_COMPILE);
      timing.mutable_baselines(2)->set_unavailable("torch.compile failed");
    }
    timing.mutable_baselines(1)->add_reference_seconds(i);
    timing.mutable_baselines(1)->add_candidate_seconds(10 + i);
    if (i != 1) timing.mutable_baselines(1)->add_sample_states()->set_readings(100 + i);
    replicas.push_back(timing);
  }
  const v1::TimingReport timing = CombineReplicas(replicas);
  REQUIRE(timing.baselines_size() == 3);
  CHECK(timing.baselines(0).baseline() == v1::BASELINE_EAGER);
  CHECK(timing.baselines(0).replicas() == 3);
  CHECK(std::log(timing.baselines(0).speedup()) == Approx(0.7));
  CHECK(timing.baselines(1).reference_seconds_size() == 3);
  CHECK(timing.baselines(1).candidate_seconds(2) == 12);
  REQUIRE(timing.baselines(1).sample_states_size() == 3);
  CHECK(timing.baselines(1).sample_states(2).readings() == 102);
  CHECK(timing.baselines(2).speedup() == 0);
  CHECK(timing.baselines(2).unavailable() == "in pair of processes 2: torch.compile failed");
  // One that is missing altogether, or whose figures are none.
  replicas[2].mutable_baselines()->RemoveLast();
  replicas[1] = replicas[0];
  CHECK(absl::StrContains(CombineReplicas(replicas).baselines(2).unavailable(), "processes 3: there is no figure"));
  replicas[0].mutable_baselines(1)->set_speedup_low(std::nan(""));
  CHECK(absl::StrContains(CombineReplicas(replicas).baselines(1).unavailable(), "processes 1"));
}

TEST_CASE("Counts are added up, and the device's state is what it was at its extremes") {
  v1::TimingReport first = Replica(0, 0.01), second = Replica(0, 0.01);
  first.set_method("duet, runs of 400 calls");
  first.set_discarded(2);
  first.add_discards()->set_reason("clock");
  first.mutable_discards(0)->set_count(2);
  first.set_sampling_seconds(0.5);
  first.set_outputs_verified(3);
  first.set_outputs_timed(30);
  first.set_calls_per_sample(400);
  first.set_flush_bytes(1 << 20);
  second = first;
  second.set_calls_per_sample(380);
  second.add_discards()->set_reason("slow");
  second.mutable_discards(1)->set_count(1);
  second.set_discarded(3);
  first.mutable_device_state()->set_sm_clock_mhz_low(1700);
  first.mutable_device_state()->set_sm_clock_mhz_high(1900);
  first.mutable_device_state()->set_temperature_celsius_high(50);
  first.mutable_device_state()->set_readings(5);
  first.mutable_device_state()->add_throttle_reasons("sw_power_cap");
  *second.mutable_device_state() = first.device_state();
  second.mutable_device_state()->set_sm_clock_mhz_low(1600);
  second.mutable_device_state()->set_temperature_celsius_high(55);
  second.mutable_device_state()->add_throttle_reasons("hw_slowdown");
  const v1::TimingReport timing = CombineReplicas({first, second});
  CHECK(timing.method() == "duet, runs of 400 calls, in 2 pairs of processes");
  CHECK(timing.discarded() == 5);
  REQUIRE(timing.discards_size() == 2);
  CHECK(timing.discards(0).count() == 4);
  CHECK(timing.sampling_seconds() == 1);
  CHECK(timing.outputs_verified() == 6);
  CHECK(timing.outputs_timed() == 60);
  CHECK(timing.calls_per_sample() == 380);
  CHECK(timing.flush_bytes() == 1 << 20);
  const v1::DeviceState& state = timing.device_state();
  CHECK(state.sm_clock_mhz_low() == 1600);
  CHECK(state.sm_clock_mhz_high() == 1900);
  CHECK(state.temperature_celsius_high() == 55);
  CHECK(state.readings() == 10);
  CHECK(state.throttle_reasons_size() == 2);
  CHECK(state.unavailable() == "");
  CHECK_FALSE(state.has_foreign_processes());
}

TEST_CASE("A call by itself takes what it takes in the middle one of those that know it") {
  std::vector<v1::TimingReport> replicas(4, Replica(0, 0.01));
  CHECK(CombineReplicas(replicas).alone_seconds() == 0);
  replicas[1].set_alone_seconds(3e-5);
  replicas[2].set_alone_seconds(1e-5);
  CHECK(CombineReplicas(replicas).alone_seconds() == Approx(2e-5));
  replicas[3].set_alone_seconds(1.1e-5);
  CHECK(CombineReplicas(replicas).alone_seconds() == Approx(1.1e-5));
}

TEST_CASE("What one pair of processes lacks of the device's state is said, and what the others have is kept") {
  v1::TimingReport whole = Replica(0, 0.01), ended = whole, none = whole;
  whole.mutable_device_state()->set_sm_clock_mhz_low(1900);
  whole.mutable_device_state()->set_readings(5);
  *ended.mutable_device_state() = whole.device_state();
  ended.mutable_device_state()->set_sm_clock_mhz_low(1800);
  ended.mutable_device_state()->set_unavailable("the readings ended");
  none.mutable_device_state()->set_unavailable("no NVML");
  none.mutable_device_state()->set_foreign_processes(1);
  const v1::DeviceState state = CombineReplicas({whole, ended, none}).device_state();
  CHECK(state.readings() == 10);
  CHECK(state.sm_clock_mhz_low() == 1800);
  CHECK(state.unavailable() == "the readings ended");
  CHECK(state.foreign_processes() == 1);
  const v1::DeviceState nothing = CombineReplicas({none, none}).device_state();
  CHECK(nothing.readings() == 0);
  CHECK(nothing.unavailable() == "no NVML");
  CHECK(nothing.foreign_processes() == 1);
}

// Comparisons on a machine whose processes differ by `between`, each known to `within` from inside.
struct Machine {
  double between, within;
  int replicas;
};

v1::BaselineTiming Compared(const Machine& machine, double truth, std::mt19937_64* random) {
  std::normal_distribution<double> normal;
  std::vector<v1::TimingReport> replicas;
  for (int i = 0; i < machine.replicas; ++i) {
    // What an interval of few pairs says of its own error is itself known to a quarter.
    const double said = 1.96 * machine.within * std::exp(0.25 * normal(*random));
    replicas.push_back(
        Replica(truth + machine.between * normal(*random) + machine.within * normal(*random), said + 1e-9));
  }
  return CombineReplicas(replicas).baselines(0);
}

double Coverage(const Machine& machine, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  constexpr int kRuns = 4000;
  int held = 0;
  for (int run = 0; run < kRuns; ++run) {
    const v1::BaselineTiming timing = Compared(machine, 0.1, &random);
    held += std::log(timing.speedup_low()) <= 0.1 && 0.1 <= std::log(timing.speedup_high()) ? 1 : 0;
  }
  return static_cast<double>(held) / kRuns;
}

TEST_CASE("Intervals of comparisons hold the truth as often as they say, whatever processes differ by") {
  for (const int replicas : {3, 4, 6, 8, 16}) {
    for (const double within : {0.0, 0.0005, 0.001, 0.002}) {
      CAPTURE(replicas, within);
      const double coverage = Coverage({0.003, within, replicas}, 42);
      CHECK(coverage >= 0.93);
      CHECK(coverage <= 0.97);
    }
    // Where processes do not differ: what they say of themselves keeps lucky agreement from being believed.
    CAPTURE(replicas);
    CHECK(Coverage({0, 0.003, replicas}, 43) >= 0.93);
  }
  // Two of them say little of how they differ, and then what each says of itself may only add.
  CHECK(Coverage({0.003, 0.001, 2}, 45) >= 0.93);
  // One pair of processes alone knows nothing of it.
  const double single = Coverage({0.003, 0.0015, 1}, 44);
  CHECK(single < 0.75);
}

}  // namespace
}  // namespace grove::measure
