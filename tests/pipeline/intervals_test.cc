#include <algorithm>
#include <catch2/catch.hpp>

#include "common/measure/comparison.h"
#include "worker/pipeline/verdict.h"

namespace grove::worker {
namespace {

v1::EvaluationResult Timed(double resolution) {
  v1::EvaluationResult result;
  result.set_verdict(v1::VERDICT_CORRECT);
  result.set_reason("2x [1.99, 2.01] against eager, 20 samples");
  result.mutable_device()->mutable_calibration()->set_resolution(resolution);
  for (const v1::Baseline baseline : {v1::BASELINE_EAGER, v1::BASELINE_RIVAL}) {
    v1::BaselineTiming* timing = result.mutable_timing()->add_baselines();
    timing->set_baseline(baseline);
    timing->set_speedup(2);
    timing->set_speedup_low(1.99);
    timing->set_speedup_high(2.01);
  }
  measure::FillComparisons(&result);
  return result;
}

TEST_CASE("On a calibrated device intervals hold what equal programs differ by, and the reason says the same") {
  v1::EvaluationResult result = Timed(0.02);
  result.mutable_timing()->mutable_baselines(1)->set_replicas(4);  // whose interval knows by itself
  v1::Combination* one = result.add_combinations();
  one->set_speedup(4);
  one->set_speedup_low(3.99);
  one->set_speedup_high(4.2);
  one->set_reason("4x [3.99, 4.2] against eager, 20 samples");
  result.add_combinations()->set_reason("wrong");
  WidenIntervals(/*script=*/false, &result);
  const v1::BaselineTiming& eager = result.timing().baselines(0);
  CHECK(eager.speedup_low() == Approx(2 / 1.02));
  CHECK(eager.speedup_high() == Approx(2.04));
  CHECK(eager.runs_low() == 1.99);
  CHECK(eager.runs_high() == 2.01);
  CHECK(result.reason() == "2x [1.96, 2.04] against eager, 20 samples");
  CHECK(result.timing().baselines(1).speedup_low() == 1.99);
  CHECK(result.timing().baselines(1).runs_low() == 0);
  CHECK(result.combinations(0).speedup_low() == Approx(4 / 1.02));
  CHECK(result.combinations(0).speedup_high() == 4.2);
  CHECK(result.combinations(0).reason() == "4x [3.92, 4.2] against eager, 20 samples");
  CHECK(result.combinations(1).speedup_low() == 0);
  // Once is enough.
  const std::string before = result.SerializeAsString();
  WidenIntervals(/*script=*/false, &result);
  CHECK(result.SerializeAsString() == before);
}

TEST_CASE("Intervals wider than the resolution stay, as do all where nothing was calibrated or nothing was timed") {
  for (const double resolution : {0.001, 0.0}) {
    v1::EvaluationResult result = Timed(resolution);
    const std::string before = result.SerializeAsString();
    WidenIntervals(/*script=*/false, &result);
    CHECK(result.SerializeAsString() == before);
  }
  v1::EvaluationResult wrong = Timed(0.02);
  wrong.set_verdict(v1::VERDICT_WRONG);
  const std::string before = wrong.SerializeAsString();
  WidenIntervals(/*script=*/false, &wrong);
  CHECK(wrong.SerializeAsString() == before);
}

TEST_CASE("Intervals of scripts on a GPU hold what processes of one script differ by, calibrated or not") {
  for (const double resolution : {0.001, 0.0, 0.05}) {
    v1::EvaluationResult result = Timed(resolution);
    result.mutable_device()->set_kind(v1::DEVICE_KIND_CUDA);
    measure::FillComparisons(&result, /*script=*/true);
    const double widest = std::max(resolution, measure::kScriptResolutionCuda);
    CHECK(result.timing().baselines(0).resolution() == widest);
    WidenIntervals(/*script=*/true, &result);
    CHECK(result.timing().baselines(0).speedup_low() == Approx(2 / (1 + widest)));
    CHECK(result.timing().baselines(0).speedup_high() == Approx(2 * (1 + widest)));
    CHECK(result.timing().baselines(0).runs_low() == 1.99);
  }
  // Replicas know by themselves.
  v1::EvaluationResult replicas = Timed(0.001);
  replicas.mutable_device()->set_kind(v1::DEVICE_KIND_CUDA);
  replicas.mutable_timing()->mutable_baselines(0)->set_replicas(4);
  measure::FillComparisons(&replicas, /*script=*/true);
  CHECK(replicas.timing().baselines(0).resolution() == 0.001);
  // A CPU's default is another matter: nothing is known of scripts there.
  v1::EvaluationResult cpu = Timed(0.001);
  cpu.mutable_device()->set_kind(v1::DEVICE_KIND_CPU);
  measure::FillComparisons(&cpu, /*script=*/true);
  CHECK(cpu.timing().baselines(0).resolution() == 0.001);
}

}  // namespace
}  // namespace grove::worker
