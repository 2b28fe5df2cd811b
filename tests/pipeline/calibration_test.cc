#include "worker/pipeline/calibration.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <map>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/measure/comparison.h"
#include "tests/support/temp_dir.h"
#include "worker/pipeline/calibration_kernels.h"
#include "worker/pipeline/calibrator.h"

namespace grove::worker {
namespace {

PairedRun Run(double low, double high, const std::string& kernel = "k") {
  return {kernel, 1e-4, std::sqrt(low * high), low, high, 0};
}

TEST_CASE("The resolution is what 95 % of the runs and one more lie within", "[calibration]") {
  std::vector<PairedRun> runs;
  for (int i = 1; i <= 40; ++i) runs.push_back(Run(std::exp(-0.001 * i), std::exp(0.001 * i)));
  // 38 of 40 are 95 %, and one more: the 39th reaches to 0.039, which is twice exp(0.0195) - 1 = 0.01969, rounded up.
  CHECK(ResolutionOfRuns(runs) == Approx(0.020));
  // Ratios that scatter decide by themselves: t(2) = 4.30 times 0.01.
  CHECK(ResolutionOfRuns({Run(1.01, 1.01), Run(1 / 1.01, 1 / 1.01)}) ==
        Approx(std::exp(4.3027 * std::log(1.01)) - 1).epsilon(0.03));
  const v1::Calibration calibration = Summarise(runs, {}, 0.02);
  CHECK(calibration.runs() == 40);
  CHECK(calibration.same_share() >= 0.95);
  CHECK(calibration.coverage() == 1);
  CHECK(calibration.warnings_size() == 0);
  CHECK(calibration.detection_runs() == 0);
  // Never finer than a thousandth, whatever the runs say.
  CHECK(ResolutionOfRuns({Run(1, 1)}) == Approx(kFinestResolution));
  CHECK(ResolutionOfRuns({}) == 0);
}

TEST_CASE("At the resolution found at least 95 % of runs on a simulated machine are the same", "[calibration]") {
  std::mt19937_64 random(3);
  std::normal_distribution<double> error(0, 0.004);
  std::uniform_real_distribution<double> width(0.004, 0.012);
  const auto simulate = [&](int count) {
    std::vector<PairedRun> runs;
    for (int i = 0; i < count; ++i) {
      const double middle = error(random), half = width(random);
      runs.push_back(Run(std::exp(middle - half), std::exp(middle + half)));
    }
    return runs;
  };
  double later = 0;
  constexpr int kMachines = 200;
  for (int machine = 0; machine < kMachines; ++machine) {
    const v1::Calibration calibration = Summarise(simulate(40), {}, 0.02);
    CHECK(calibration.same_share() >= 0.95);
    // And of those that come afterwards.
    int same = 0;
    for (const PairedRun& run : simulate(100)) {
      same += measure::Compare(run.ratio, run.low, run.high, calibration.resolution()) == v1::COMPARISON_SAME ? 1 : 0;
    }
    later += same / 100.0 / kMachines;
  }
  CHECK(later >= 0.95);
}

TEST_CASE("Quiet kernels do not hide a restless one, however many runs there are", "[calibration]") {
  std::mt19937_64 random(6);
  for (const int runs : {40, 200, 1000}) {
    std::vector<PairedRun> same;
    for (int i = 0; i < runs; ++i) {
      const int kernel = i % 5;
      std::uniform_real_distribution<double> reach(0, kernel == 0 ? 0.03 : 0.003);
      const double half = 0.001 + reach(random);
      same.push_back(Run(std::exp(-half), std::exp(half), absl::StrCat(kernel)));
      // Near the next one's length: a run is judged by its own, not by its kernel's.
      same.back().seconds = std::pow(10, kernel) * 1e-6 * (kernel == 3 && i % 2 == 0 ? 8.2 : 1);
      same.back().run_seconds = 40e-3;
    }
    v1::DeviceInfo device;
    *device.mutable_calibration() = Summarise(same, {}, 0.02);
    for (const v1::CalibrationKernel& kernel : device.calibration().kernels()) {
      CAPTURE(runs, kernel.name());
      CHECK(kernel.same() >= 0.95 * kernel.runs());
      CHECK(kernel.resolution() <= device.calibration().resolution());
    }
    CHECK(measure::ResolutionOf(device, 1e-3, 40e-3) < 0.007);
  }
}

TEST_CASE("A kernel's own resolution holds for its runs to come, though few were made", "[calibration]") {
  std::mt19937_64 random(4);
  std::normal_distribution<double> error(0, 0.002), wide(0, 0.35);
  constexpr int kMachines = 400;
  for (const int own : {6, 8, 15}) {
    double later = 0;
    for (int machine = 0; machine < kMachines; ++machine) {
      std::vector<PairedRun> same;
      const auto simulate = [&](double seconds, double coarser) {
        const double middle = coarser * error(random), half = coarser * 0.003 * std::exp(wide(random));
        PairedRun run = Run(std::exp(middle - half), std::exp(middle + half), seconds > 1e-5 ? "long" : "short");
        run.seconds = seconds;
        return run;
      };
      for (int i = 0; i < own; ++i) {
        same.push_back(simulate(1e-4, 1));
        same.push_back(simulate(6e-6, 4));
      }
      v1::DeviceInfo device;
      *device.mutable_calibration() = Summarise(same, {}, 0.02);
      CHECK(device.calibration().same_share() == 1);
      int as_same = 0;
      for (int i = 0; i < 100; ++i) {
        const PairedRun run = simulate(1e-4, 1);
        const double resolution = measure::ResolutionOf(device, run.seconds, run.run_seconds);
        as_same += measure::Compare(run.ratio, run.low, run.high, resolution) == v1::COMPARISON_SAME ? 1 : 0;
      }
      later += as_same / 100.0 / kMachines;
    }
    CAPTURE(own, later);
    CHECK(later >= 0.95);
    CHECK(later <= 0.98);
  }
}

TEST_CASE("Intervals that miss the truth and slowdowns that are missed are warned of", "[calibration]") {
  // One of eight runs of each kernel is far off, which the others do not tell of: the shorter, the further.
  std::vector<PairedRun> same, planted;
  double off = 0.01, seconds = 1e-3;
  for (int kernel = 0; kernel < 5; ++kernel, off *= 2, seconds /= 3) {
    for (int i = 0; i < 8; ++i) {
      same.push_back(i == 3 ? Run(1 + off, 1 + off, absl::StrCat(kernel)) : Run(0.999, 1.001, absl::StrCat(kernel)));
      same.back().seconds = seconds;
    }
  }
  for (int i = 0; i < 20; ++i) planted.push_back(i < 10 ? Run(0.975, 0.985) : Run(0.985, 1.001));
  for (PairedRun& run : planted) run.seconds = 1e-3, run.sampling_seconds = 1.2;
  planted[3].sampling_seconds = 1.6;
  const v1::Calibration calibration = Summarise(same, planted, 0.02);
  CHECK(calibration.detection_sampling_seconds() == 1.6);
  CHECK(calibration.coverage() == Approx(0.875));
  CHECK(calibration.runs_coverage() == Approx(0.875));
  for (const v1::CalibrationKernel& kernel : calibration.kernels()) CHECK(kernel.covered() == 7);
  CHECK(calibration.same_share() == 1);
  CHECK(calibration.detection_share() == Approx(0.5));
  CHECK(calibration.detection_runs() == 20);
  CHECK(calibration.detection_slowdown() == 0.02);
  REQUIRE(calibration.warnings_size() == 2);
  CHECK(absl::StrContains(calibration.warnings(0), "35 of 40"));
  CHECK(absl::StrContains(calibration.warnings(1), "10 of 20"));
  // 36 of 40 is what chance gives one time in seven: no warning.
  same[3] = same[4];
  CHECK(Summarise(same, {}, 0.02).coverage() == Approx(0.9));
  CHECK(Summarise(same, {}, 0.02).warnings_size() == 0);
  same.resize(10);
  REQUIRE(Summarise(same, {}, 0.02).warnings_size() == 1);
  CHECK(absl::StrContains(Summarise(same, {}, 0.02).warnings(0), "only 10"));
}

TEST_CASE("What pairs of runs say of themselves is told apart from what the calibration knows", "[calibration]") {
  std::vector<PairedRun> same;
  for (int i = 0; i < 40; ++i) same.push_back(i % 2 == 0 ? Run(1.002, 1.004) : Run(1 / 1.004, 1 / 1.002));
  const v1::Calibration calibration = Summarise(same, {}, 0.02);
  CHECK(calibration.runs_coverage() == 0);
  CHECK(calibration.coverage() == 1);
  CHECK(calibration.kernels(0).spread() == Approx(0.003).epsilon(0.01));
  CHECK(calibration.resolution() == Approx(0.0061).epsilon(0.02));  // t(40) = 2.02 times that
  CHECK(calibration.warnings_size() == 0);
}

TEST_CASE("Runs are told by kernel", "[calibration]") {
  const v1::Calibration calibration =
      Summarise({Run(0.99, 1.01, "a"), Run(0.9, 1.1, "b"), Run(1.01, 1.02, "a")}, {}, 0.02);
  REQUIRE(calibration.kernels_size() == 2);
  CHECK(calibration.kernels(0).name() == "a");
  CHECK(calibration.kernels(0).runs() == 2);
  CHECK(calibration.kernels(0).covered() == 2);  // the second by what the other kernel needs
  CHECK(calibration.kernels(1).runs() == 1);
  REQUIRE(Compact(calibration).kernels_size() == 2);
  CHECK(Compact(calibration).kernels(1).resolution() == calibration.kernels(1).resolution());
  CHECK(Compact(calibration).kernels(1).runs() == 0);
  CHECK(Compact(calibration).resolution() == calibration.resolution());
}

TEST_CASE("Short calls and short runs do not coarsen the resolution of longer ones", "[calibration]") {
  std::vector<PairedRun> same;
  const auto add = [&](const char* name, double reach, double seconds, double run_seconds) {
    same.push_back(Run(std::pow(1 + reach, -2), std::pow(1 + reach, 2), name));
    same.back().seconds = seconds;
    same.back().run_seconds = run_seconds;
  };
  for (int i = 0; i < 20; ++i) {
    add("short calls", 0.042, 6e-6, 40e-3);
    add("short runs", 0.019, 50e-6, 5e-3);
    add("long", 0.004, 100e-6, 40e-3);
    add("longer", 0.006, 1e-3, 40e-3);
  }
  std::vector<PairedRun> planted(10, Run(0.975, 0.985));
  for (PairedRun& run : planted) {
    run.seconds = 99e-6;
    run.run_seconds = 39e-3;
  }
  v1::DeviceInfo device;
  *device.mutable_calibration() = Summarise(same, planted, 0.02);
  const v1::Calibration& calibration = device.calibration();
  CHECK(calibration.resolution() == Approx(0.042));
  CHECK(calibration.same_share() == 1);
  CHECK(calibration.detection_share() == 1);
  using measure::ResolutionOf;
  CHECK(ResolutionOf(device) == Approx(0.042));
  CHECK(ResolutionOf(device, 7e-6, 40e-3) == Approx(0.042));
  CHECK(ResolutionOf(device, 50e-6, 5e-3) == Approx(0.019));
  CHECK(ResolutionOf(device, 10, 5e-3) == Approx(0.019));  // a long call in a short run
  // By what is longer too: the longer kernel is judged by it.
  CHECK(ResolutionOf(device, 100e-6, 40e-3) == Approx(0.006));
  CHECK(ResolutionOf(device, 81e-6, 33e-3) == Approx(0.006));  // about as long
  CHECK(ResolutionOf(device, 70e-6, 40e-3) == Approx(0.019));
  CHECK(ResolutionOf(device, 1, 1) == Approx(0.006));
  CHECK(ResolutionOf(device, 1, 1e-3) == Approx(0.042));  // no calibrated run is as short
  // However few runs are as long as their kernel's median, nothing is coarser than the worst.
  const v1::Calibration few = Summarise({same[0], same[1], same[2], same[3]}, {}, 0.02);
  for (const v1::CalibrationKernel& kernel : few.kernels()) CHECK(kernel.resolution() <= few.resolution());
  PairedRun shorter = same[3];
  shorter.seconds /= 2;
  shorter.high = 1.02;
  const v1::Calibration uneven = Summarise({same[3], shorter, same[3]}, {}, 0.02);
  CHECK(uneven.kernels(0).resolution() <= uneven.resolution());
  // Few runs of a kernel say less.
  same.clear();
  for (int i = 0; i < 8; ++i) {
    add("long", 0.004, 100e-6, 40e-3);
    add("short calls", 0.042, 6e-6, 40e-3);
  }
  *device.mutable_calibration() = Summarise(same, {}, 0.02);
  CHECK(ResolutionOf(device, 100e-6, 40e-3) == Approx(0.0048));
  CHECK(ResolutionOf(device) == Approx(0.050));
}

TEST_CASE("A calibration is kept for the device that it was made on, and void for any other", "[calibration]") {
  testing::TempDir dir;
  v1::DeviceInfo device;
  device.set_name("NVIDIA X");
  device.set_driver("570");
  device.set_torch("2.11");
  std::string why;
  CHECK_FALSE(LoadCalibration(dir.path(), CalibrationKey(device), &why).has_value());
  CHECK(why.empty());  // never calibrated is nothing to complain of
  v1::Calibration calibration;
  calibration.set_resolution(0.012);
  calibration.add_rates()->set_precision("float32");
  calibration.set_time_unix_nanos(1234567890123456789);
  REQUIRE(SaveCalibration(dir.path(), CalibrationKey(device), calibration).ok());
  auto loaded = LoadCalibration(dir.path(), CalibrationKey(device), &why);
  REQUIRE(loaded.has_value());
  CHECK(loaded->SerializeAsString() == calibration.SerializeAsString());
  // What it found is no part of what it holds for.
  *device.mutable_calibration() = calibration;
  CHECK(measure::ResolutionOf(device) == 0.012);
  CHECK(LoadCalibration(dir.path(), CalibrationKey(device), &why).has_value());
  for (const char* change : {"driver", "torch", "name"}) {
    v1::DeviceInfo other = device;
    if (std::string(change) == "driver") other.set_driver("580");
    if (std::string(change) == "torch") other.set_torch("2.12");
    if (std::string(change) == "name") other.set_name("NVIDIA Y");
    CHECK_FALSE(LoadCalibration(dir.path(), CalibrationKey(other), &why).has_value());
    CHECK(absl::StrContains(why, "changed"));
  }
  REQUIRE(WriteFileAtomically(absl::StrCat(dir.path(), "/calibration.json"), "{\"key\": 1}").ok());
  CHECK_FALSE(LoadCalibration(dir.path(), CalibrationKey(device), &why).has_value());
  CHECK(absl::StrContains(why, "no calibration"));
  // Another version's is that, whatever it holds; one's own that cannot be read is none.
  for (const bool own : {false, true}) {
    const std::string text = absl::StrCat("{\"key\": \"", own ? CalibrationKey(device) : "old",
                                          "\", \"calibration\": {\"no_such_field\": 1}}");
    REQUIRE(WriteFileAtomically(absl::StrCat(dir.path(), "/calibration.json"), text).ok());
    CHECK_FALSE(LoadCalibration(dir.path(), CalibrationKey(device), &why).has_value());
    CHECK(absl::StrContains(why, own ? "no calibration" : "changed"));
  }
}

// Two after two of three.
constexpr int kPlantedRuns = (kCalibrationRuns * 2 + 2) / 3;

// Plays a device: times follow from the steps that the kernels were built with, and a clock that every run moves on.
struct FakeDevice {
  double seconds_per_step = 1e-7, noise = 0.001, between = 0;  // `between`: of the processes of one program
  v1::Verdict verdict = v1::VERDICT_CORRECT;
  std::mt19937_64 random{5};
  absl::Time now = absl::FromUnixSeconds(1'000'000);
  absl::Duration seconds_each = absl::Seconds(2);
  int evaluated = 0, cancel_after = -1;
  std::vector<std::string> stages;
  std::vector<double> planted;  // how many times the rival's steps a candidate had, where they differ

  static double Steps(const v1::Candidate& candidate) {
    for (const std::string& flag : candidate.build_flags()) {
      if (flag.rfind("-DSTEPS=", 0) == 0) return std::stod(flag.substr(8)) + 1;
    }
    return 1;
  }
  CalibrationHost Host() {
    CalibrationHost host;
    host.evaluate = [this](const v1::EvaluateWork& work) -> absl::StatusOr<v1::EvaluationResult> {
      ++evaluated;
      now += seconds_each;
      v1::EvaluationResult result;
      result.set_verdict(verdict);
      result.set_reason("played");
      if (verdict != v1::VERDICT_CORRECT) return result;
      if (Steps(work.rival()) != Steps(work.candidate())) {
        planted.push_back((Steps(work.candidate()) - 1) / (Steps(work.rival()) - 1));
      }
      std::normal_distribution<double> error;
      const double ratio =
          Steps(work.rival()) / Steps(work.candidate()) * std::exp(noise * error(random) + between * error(random));
      v1::BaselineTiming* timing = result.mutable_timing()->add_baselines();
      timing->set_baseline(v1::BASELINE_RIVAL);
      timing->set_candidate_median_seconds(Steps(work.candidate()) * seconds_per_step);
      timing->set_reference_median_seconds(Steps(work.rival()) * seconds_per_step);
      timing->set_speedup(ratio);
      timing->set_speedup_low(ratio * std::exp(-2 * noise));
      timing->set_speedup_high(ratio * std::exp(2 * noise));
      return result;
    };
    host.rates = [this](absl::Duration) -> absl::StatusOr<v1::Calibration> {
      now += absl::Seconds(5);
      v1::Calibration rates;
      rates.set_bandwidth_bytes_per_second(4e12);
      rates.add_rates()->set_operations_per_second(6e13);
      return rates;
    };
    host.progress = [this](const std::string& stage, const std::string&) { stages.push_back(stage); };
    host.cancelled = [this] { return cancel_after >= 0 && evaluated >= cancel_after; };
    host.now = [this] { return now; };
    return host;
  }
};

TEST_CASE("A calibration of a quiet device finds its resolution and the slowdowns that are planted", "[calibration]") {
  for (const v1::DeviceKind kind : {v1::DEVICE_KIND_CPU, v1::DEVICE_KIND_CUDA}) {
    FakeDevice device;
    v1::CalibrateWork work;
    work.set_max_seconds(1000);
    auto calibration = Calibrate(kind, work, device.Host());
    REQUIRE(calibration.ok());
    CHECK(calibration->runs() == kCalibrationRuns);
    CHECK(calibration->resolution() < 0.01);
    CHECK(calibration->same_share() >= 0.95);
    CHECK(calibration->coverage() > 0.8);
    // But for the runs that kernels are scaled by.
    CHECK(device.evaluated - calibration->runs() - calibration->detection_runs() < 5);
    CHECK(calibration->detection_runs() == kPlantedRuns);
    CHECK(calibration->detection_share() == 1);
    // Two per cent, and not what rounding to whole steps makes of them.
    REQUIRE(device.planted.size() == kPlantedRuns);
    for (double more : device.planted) CHECK(more == Approx(1.02).epsilon(1e-9));
    CHECK(calibration->bandwidth_bytes_per_second() == 4e12);
    CHECK(calibration->rates_size() == 1);
    CHECK(calibration->time_unix_nanos() > 0);
    CHECK(calibration->kernels_size() == static_cast<int>(CalibrationCases(kind).size()));
    // Kernels are scaled to what they are named for.
    for (const v1::CalibrationKernel& kernel : calibration->kernels()) {
      if (absl::StrContains(kernel.name(), "100 us")) CHECK(kernel.seconds() == Approx(100e-6).epsilon(0.05));
    }
  }
}

TEST_CASE("What processes differ by is known to the intervals, and hides no slowdown that is larger", "[calibration]") {
  FakeDevice device;
  device.noise = 0.0005;
  device.between = 0.003;
  int covered = 0, alone = 0, runs = 0, found = 0, planted = 0, same = 0;
  for (int machine = 0; machine < 100; ++machine) {
    v1::CalibrateWork work;
    auto calibration = Calibrate(v1::DEVICE_KIND_CUDA, work, device.Host());
    REQUIRE(calibration.ok());
    runs += calibration->runs();
    covered += static_cast<int>(std::lround(calibration->coverage() * calibration->runs()));
    alone += static_cast<int>(std::lround(calibration->runs_coverage() * calibration->runs()));
    same += static_cast<int>(std::lround(calibration->same_share() * calibration->runs()));
    planted += calibration->detection_runs();
    found += static_cast<int>(std::lround(calibration->detection_share() * calibration->detection_runs()));
  }
  CAPTURE(covered, alone, runs, found, planted, same);
  CHECK(covered >= 0.94 * runs);
  CHECK(alone < 0.5 * runs);
  CHECK(same >= 0.95 * runs);
  CHECK(found >= 0.95 * planted);
}

TEST_CASE("Seven minutes are enough on a device as slow as is reckoned with, and are the limit on any",
          "[calibration]") {
  FakeDevice device;
  device.seconds_each = absl::Milliseconds(5900);
  v1::CalibrateWork work;
  auto calibration = Calibrate(v1::DEVICE_KIND_CUDA, work, device.Host());
  REQUIRE(calibration.ok());
  CHECK(calibration->runs() == kCalibrationRuns);
  CHECK(calibration->seconds() <= 420);
  device.seconds_each = absl::Seconds(9);
  calibration = Calibrate(v1::DEVICE_KIND_CUDA, work, device.Host());
  REQUIRE(calibration.ok());
  CHECK(calibration->runs() < kCalibrationRuns);
  CHECK(calibration->seconds() <= 420);
}

TEST_CASE("A noisy device gets a coarse resolution, and is told that slowdowns hide in it", "[calibration]") {
  FakeDevice device;
  device.noise = 0.05;
  v1::CalibrateWork work;
  work.set_max_seconds(1000);
  auto calibration = Calibrate(v1::DEVICE_KIND_CPU, work, device.Host());
  REQUIRE(calibration.ok());
  CHECK(calibration->resolution() > 0.1);
  CHECK(calibration->detection_share() < 0.5);
  CHECK(calibration->warnings_size() >= 1);
}

TEST_CASE("A calibration ends in time, with fewer runs", "[calibration]") {
  FakeDevice device;
  v1::CalibrateWork work;
  work.set_max_seconds(40);
  auto calibration = Calibrate(v1::DEVICE_KIND_CPU, work, device.Host());
  REQUIRE(calibration.ok());
  CHECK(calibration->seconds() < 45);
  CHECK(calibration->runs() > 0);
  CHECK(calibration->runs() < kFewRuns);
  CHECK(calibration->warnings_size() >= 1);
}

TEST_CASE("A calibration that cannot be done says why", "[calibration]") {
  FakeDevice device;
  v1::CalibrateWork work;
  device.verdict = v1::VERDICT_BUILD_FAILED;
  CHECK(absl::IsFailedPrecondition(Calibrate(v1::DEVICE_KIND_CPU, work, device.Host()).status()));
  device.verdict = v1::VERDICT_UNMEASURABLE;
  CHECK(absl::IsUnavailable(Calibrate(v1::DEVICE_KIND_CPU, work, device.Host()).status()));
  device.verdict = v1::VERDICT_CORRECT;
  device.evaluated = 0;
  device.cancel_after = 4;
  CHECK(absl::IsCancelled(Calibrate(v1::DEVICE_KIND_CPU, work, device.Host()).status()));
  CHECK(device.evaluated == 4);
}

}  // namespace
}  // namespace grove::worker
