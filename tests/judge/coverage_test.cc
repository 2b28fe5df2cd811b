// Measurements of simulated machines: do intervals hold the truth, and are comparisons right?
#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <vector>

#include "common/measure/comparison.h"
#include "worker/judge/statistics.h"

namespace grove::judge {
namespace {

struct Machine {
  double noise = 0.01;  // of one pair, relative
  double memory = 0;    // correlation of neighbouring pairs
  double spikes = 0;    // share of pairs that something disturbed, ten times the noise
  int pairs = 40;
};

// Pairs of a kernel that is `ratio` times faster than the other.
RatioEstimate Measure(const Machine& machine, double ratio, std::mt19937_64* random) {
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> unit;
  std::vector<double> reference, candidate;
  double mood = 0;
  for (int i = 0; i < machine.pairs; ++i) {
    mood = machine.memory * mood + std::sqrt(1 - machine.memory * machine.memory) * normal(*random);
    double error = machine.noise * mood;
    if (unit(*random) < machine.spikes) error += 10 * machine.noise * normal(*random);
    reference.push_back(100e-6 * ratio * std::exp(error));
    candidate.push_back(100e-6);
  }
  return EstimateRatio(reference, candidate, kBlock, (*random)());
}

double Coverage(const Machine& machine, int runs) {
  std::mt19937_64 random(1);
  int held = 0;
  for (int run = 0; run < runs; ++run) {
    const RatioEstimate estimate = Measure(machine, 1.1, &random);
    held += estimate.low <= 1.1 && 1.1 <= estimate.high ? 1 : 0;
  }
  return static_cast<double>(held) / runs;
}

TEST_CASE("Intervals of few pairs hold the truth as often as those of many", "[coverage]") {
  for (const int pairs : {10, 20, 40, 100}) {
    CAPTURE(pairs);
    Machine machine;
    machine.pairs = pairs;
    CHECK(Coverage(machine, 400) >= 0.91);
    machine.spikes = 0.1;
    CHECK(Coverage(machine, 400) >= 0.89);
  }
}

TEST_CASE("Intervals hold the truth also where neighbouring pairs hang together", "[coverage]") {
  for (const int pairs : {20, 40}) {
    CAPTURE(pairs);
    Machine machine;
    machine.pairs = pairs;
    machine.memory = 0.5;
    CHECK(Coverage(machine, 300) >= 0.83);
  }
}

TEST_CASE("A kernel against itself is nearly always the same, and a planted 2 % is found nearly always", "[coverage]") {
  // What a GPU's pairs of a 100 us kernel scatter by.
  Machine machine;
  machine.noise = 0.006;
  machine.spikes = 0.02;
  constexpr double kResolution = 0.008;
  std::mt19937_64 random(2);
  int same = 0, wrong = 0, found = 0;
  constexpr int kRuns = 300;
  for (int run = 0; run < kRuns; ++run) {
    const RatioEstimate itself = Measure(machine, 1, &random);
    const v1::Comparison comparison = measure::Compare(itself.speedup, itself.low, itself.high, kResolution);
    same += comparison == v1::COMPARISON_SAME ? 1 : 0;
    wrong += comparison == v1::COMPARISON_FASTER || comparison == v1::COMPARISON_SLOWER ? 1 : 0;
    const RatioEstimate slowed = Measure(machine, 1 / 1.02, &random);
    found += measure::Compare(slowed.speedup, slowed.low, slowed.high, kResolution) == v1::COMPARISON_SLOWER ? 1 : 0;
  }
  CAPTURE(same, wrong, found);
  CHECK(same >= kRuns * 95 / 100);
  CHECK(wrong == 0);
  CHECK(found >= kRuns * 95 / 100);
}

TEST_CASE("The worst machine that was never calibrated makes comparisons unclear and not wrong", "[coverage]") {
  Machine machine;
  machine.noise = 0.1;
  machine.memory = 0.6;
  machine.spikes = 0.2;
  std::mt19937_64 random(3);
  int wrong = 0;
  constexpr int kRuns = 300;
  for (int run = 0; run < kRuns; ++run) {
    const RatioEstimate itself = Measure(machine, 1, &random);
    const v1::Comparison comparison =
        measure::Compare(itself.speedup, itself.low, itself.high, measure::kDefaultResolutionCpu);
    wrong += comparison == v1::COMPARISON_FASTER || comparison == v1::COMPARISON_SLOWER ? 1 : 0;
  }
  CHECK(wrong <= kRuns / 50);
}

}  // namespace
}  // namespace grove::judge
