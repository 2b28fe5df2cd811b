#include "common/measure/comparison.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>

namespace grove::measure {
namespace {

TEST_CASE("A ratio is judged by its interval and by the resolution") {
  CHECK(Compare(1.1, 1.05, 1.2, 0.02) == v1::COMPARISON_FASTER);
  CHECK(Compare(0.9, 0.8, 0.95, 0.02) == v1::COMPARISON_SLOWER);
  CHECK(Compare(1, 0.99, 1.01, 0.02) == v1::COMPARISON_SAME);
  // More than the device may err, and faster for sure: by how much is not known as well.
  CHECK(Compare(1.03, 1.005, 1.06, 0.02) == v1::COMPARISON_FASTER);
  CHECK(Compare(1.03, 0.99, 1.05, 0.02) == v1::COMPARISON_UNCLEAR);
  // Faster than 1 for sure, and still no more than the device may err.
  CHECK(Compare(1.01, 1.005, 1.015, 0.02) == v1::COMPARISON_SAME);
  CHECK(Compare(1.02, 1.01, 1.03, 0.02) == v1::COMPARISON_SAME);
  // No difference is seen, and one of more than twice what would be seen is not excluded.
  CHECK(Compare(1.015, 0.99, 1.05, 0.02) == v1::COMPARISON_UNCLEAR);
  CHECK(Compare(1, 0.5, 2, 0.02) == v1::COMPARISON_UNCLEAR);
  CHECK(Compare(1, 1, 1, 0) == v1::COMPARISON_SAME);
}

TEST_CASE("An interval is made as wide as the resolution, which changes no comparison") {
  double low = 1.005, high = 1.015;
  CHECK(Widen(1.01, 0.02, &low, &high));
  CHECK(low == Approx(1.01 / 1.02));
  CHECK(high == Approx(1.01 * 1.02));
  CHECK_FALSE(Widen(1.01, 0.02, &low, &high));
  CHECK_FALSE(Widen(1.01, 0.001, &low, &high));
  // To the side alone on which it is narrower.
  low = 0.9, high = 1.02;
  CHECK(Widen(1.01, 0.02, &low, &high));
  CHECK(low == 0.9);
  CHECK(high == Approx(1.0302));
  low = 0, high = 0;
  CHECK_FALSE(Widen(0, 0.02, &low, &high));
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> log_ratio(-0.1, 0.1), half(0, 0.1), resolution(0, 0.1);
  for (int i = 0; i < 20'000; ++i) {
    const double y = log_ratio(random), r = resolution(random);
    low = std::exp(y - half(random)), high = std::exp(y + half(random));
    const v1::Comparison before = Compare(std::exp(y), low, high, r);
    Widen(std::exp(y), r, &low, &high);
    CHECK(Compare(std::exp(y), low, high, r) == before);
  }
}

TEST_CASE("Figures that are none compare to nothing") {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  CHECK(Compare(0, 0, 0, 0.02) == v1::COMPARISON_UNSPECIFIED);
  CHECK(Compare(1, nan, 1, 0.02) == v1::COMPARISON_UNSPECIFIED);
  CHECK(Compare(nan, 1, 1, 0.02) == v1::COMPARISON_UNSPECIFIED);
  CHECK(Compare(1, 1, nan, 0.02) == v1::COMPARISON_UNSPECIFIED);
  CHECK(Compare(1, 1, inf, 0.02) == v1::COMPARISON_UNSPECIFIED);
  CHECK(Compare(1.15, 1.2, 1.1, 0.02) == v1::COMPARISON_UNSPECIFIED);
  CHECK(Compare(1.3, 1.1, 1.2, 0.02) == v1::COMPARISON_UNSPECIFIED);
  CHECK(Compare(0.5, -1, 1, 0.02) == v1::COMPARISON_UNSPECIFIED);
}

TEST_CASE("Who swaps the sides swaps faster and slower, and a coarser resolution never claims more") {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> log_ratio(-0.2, 0.2), width(0, 0.1), resolution(0, 0.1);
  for (int i = 0; i < 20'000; ++i) {
    const double middle = log_ratio(random), half = width(random), r = resolution(random);
    const double low = std::exp(middle - half), high = std::exp(middle + half);
    const double ratio = std::exp(middle);
    const v1::Comparison here = Compare(ratio, low, high, r), there = Compare(1 / ratio, 1 / high, 1 / low, r);
    if (here == v1::COMPARISON_FASTER) CHECK(there == v1::COMPARISON_SLOWER);
    if (here == v1::COMPARISON_SLOWER) CHECK(there == v1::COMPARISON_FASTER);
    if (here == v1::COMPARISON_SAME) CHECK(there == v1::COMPARISON_SAME);
    const v1::Comparison coarser = Compare(ratio, low, high, r + 0.01);
    if (here == v1::COMPARISON_SAME) CHECK(coarser == v1::COMPARISON_SAME);
    if (coarser == v1::COMPARISON_FASTER || coarser == v1::COMPARISON_SLOWER) CHECK(here == coarser);
  }
}

TEST_CASE("A device that was never calibrated has the default of its kind") {
  v1::DeviceInfo device;
  device.set_kind(v1::DEVICE_KIND_CPU);
  CHECK(ResolutionOf(device) == kDefaultResolutionCpu);
  device.set_kind(v1::DEVICE_KIND_CUDA);
  CHECK(ResolutionOf(device) == kDefaultResolutionCuda);
  device.mutable_calibration()->set_resolution(0.004);
  CHECK(ResolutionOf(device) == 0.004);
  CHECK(ResolutionOf(device, 1, 1) == 0.004);
  // Longer calls and runs have that of the kernel that is no longer, and never a coarser one.
  v1::CalibrationKernel* kernel = device.mutable_calibration()->add_kernels();
  kernel->set_seconds(100e-6);
  kernel->set_run_seconds(40e-3);
  CHECK(ResolutionOf(device, 1, 1) == 0.004);  // one that says nothing
  kernel->set_resolution(0.002);
  CHECK(ResolutionOf(device) == 0.004);
  CHECK(ResolutionOf(device, 100e-6, 40e-3) == 0.002);
  CHECK(ResolutionOf(device, 79e-6, 40e-3) == 0.004);
  CHECK(ResolutionOf(device, 100e-6, 31e-3) == 0.004);
  CHECK(ResolutionOf(device, std::nan(""), 1) == 0.004);
  kernel->set_resolution(0.03);
  CHECK(ResolutionOf(device, 100e-6, 40e-3) == 0.004);
}

TEST_CASE("Every baseline with figures gets its comparison, and one without gets none") {
  v1::EvaluationResult result;
  result.set_verdict(v1::VERDICT_CORRECT);
  result.mutable_device()->mutable_calibration()->set_resolution(0.01);
  v1::BaselineTiming* eager = result.mutable_timing()->add_baselines();
  eager->set_speedup(2);
  eager->set_speedup_low(1.9);
  eager->set_speedup_high(2.1);
  result.mutable_timing()->add_baselines()->set_unavailable("no torch.compile here");
  FillComparisons(&result);
  CHECK(result.timing().baselines(0).comparison() == v1::COMPARISON_FASTER);
  CHECK(result.timing().baselines(0).resolution() == 0.01);
  CHECK(result.timing().baselines(1).comparison() == v1::COMPARISON_UNSPECIFIED);
  CHECK(result.timing().baselines(1).resolution() == 0);
  CHECK(Ranking(result) == &result.timing().baselines(0));
  CHECK(AgainstRival(result) == nullptr);
}

}  // namespace
}  // namespace grove::measure
