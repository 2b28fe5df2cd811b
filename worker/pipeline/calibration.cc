#include "worker/pipeline/calibration.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "common/base/files.h"
#include "common/base/hash.h"
#include "common/base/version.h"
#include "common/measure/comparison.h"
#include "common/measure/replicas.h"

namespace grove::worker {
namespace {

constexpr char kFile[] = "calibration.json";
constexpr char kMeaning[] = "2";  // changes with what a resolution is
constexpr double kShare = 0.95;   // of runs that come out as SAME; of intervals that hold the truth; of slowdowns found
// The worst of n runs is one that 1 in n + 1 of those to come exceeds. Widened by this over n they are 1 in 20 for n
// from 6 to 19, by simulation (tests/pipeline/calibration_test.cc).
constexpr double kWidenFew = 1.5;
// A share that falls short of its nominal value is said to when chance would do that less often than this.
constexpr double kChance = 0.05;

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The smallest resolution at which it is SAME (measure::Compare): its ratio within that, its far end within twice.
double Needed(const PairedRun& run) {
  const double far = std::max(std::abs(std::log(run.low)), std::abs(std::log(run.high)));
  return std::max(std::abs(std::log(run.ratio)), far / 2);
}

bool Holds(double low, double high) { return low <= 1 && high >= 1; }

// Root mean square of what is 0 in truth.
double Spread(const std::vector<PairedRun>& same) {
  double squares = 0;
  for (const PairedRun& run : same) squares += std::pow(std::log(run.ratio), 2);
  return same.empty() ? 0 : std::sqrt(squares / static_cast<double>(same.size()));
}

// The chance of at most `hits` in `runs` when each hits with probability kShare.
double ChanceOfAtMost(int hits, int runs) {
  double sum = 0;
  for (int k = 0; k <= hits; ++k) {
    sum += std::exp(std::lgamma(runs + 1) - std::lgamma(k + 1) - std::lgamma(runs - k + 1) + k * std::log(kShare) +
                    (runs - k) * std::log(1 - kShare));
  }
  return sum;
}

v1::CalibrationKernel* Find(const std::string& name, v1::Calibration* calibration) {
  for (v1::CalibrationKernel& kernel : *calibration->mutable_kernels()) {
    if (kernel.name() == name) return &kernel;
  }
  return nullptr;
}

// What is judged by the resolution of calls and runs that long is every run that is about as long or longer, so each
// kernel among them must be the SAME at it by its own runs: many runs of a quiet one say nothing for a restless one.
// `without`: a run that has no part in it.
double ResolutionFrom(double seconds, double run_seconds, const std::vector<PairedRun>& same,
                      const PairedRun* without = nullptr) {
  std::map<std::string, std::vector<PairedRun>> kernels;
  for (const PairedRun& run : same) {
    if (&run != without && run.seconds >= measure::kAboutAsLong * seconds &&
        run.run_seconds >= measure::kAboutAsLong * run_seconds) {
      kernels[run.kernel].push_back(run);
    }
  }
  double worst = 0;
  for (const auto& [name, runs] : kernels) worst = std::max(worst, ResolutionOfRuns(runs));
  return worst;
}

}  // namespace

double ResolutionOfRuns(const std::vector<PairedRun>& same) {
  if (same.empty()) return 0;
  std::vector<double> needed;
  for (const PairedRun& run : same) needed.push_back(Needed(run));
  std::sort(needed.begin(), needed.end());
  const double count = static_cast<double>(same.size());
  const size_t rank = std::min(needed.size(), static_cast<size_t>(std::ceil(kShare * count)) + 1);
  const double widen = same.size() < kFewRuns ? 1 + kWidenFew / count : 1;
  const double next = measure::StudentQuantile(static_cast<int>(same.size())) * Spread(same);
  const double found = std::max({std::exp(next) - 1, widen * (std::exp(needed[rank - 1]) - 1), kFinestResolution});
  const double digit = std::pow(10.0, std::floor(std::log10(found)) - 1);
  // The small term: 0.0050 is 0.0050 also where division makes 0.005000000001 of it.
  return std::ceil(found / digit - 1e-9) * digit;
}

v1::Calibration Summarise(const std::vector<PairedRun>& same, const std::vector<PairedRun>& planted, double slowdown) {
  v1::Calibration calibration;
  calibration.set_resolution(ResolutionFrom(0, 0, same));
  calibration.set_runs(static_cast<int>(same.size()));
  std::map<std::string, std::vector<PairedRun>> runs_of;
  std::vector<std::string> names;
  for (const PairedRun& run : same) {
    if (runs_of[run.kernel].empty()) names.push_back(run.kernel);
    runs_of[run.kernel].push_back(run);
  }
  for (const std::string& name : names) {
    const std::vector<PairedRun>& own = runs_of[name];
    v1::CalibrationKernel* kernel = calibration.add_kernels();
    kernel->set_name(name);
    std::vector<double> seconds, run_seconds, widths;
    for (const PairedRun& run : own) {
      seconds.push_back(run.seconds);
      run_seconds.push_back(run.run_seconds);
      widths.push_back(std::log(run.high / run.low));
      kernel->set_deviation(std::max(kernel->deviation(), std::abs(std::log(run.ratio))));
    }
    kernel->set_runs(static_cast<int>(own.size()));
    kernel->set_seconds(Median(seconds));
    kernel->set_run_seconds(Median(run_seconds));
    kernel->set_width(Median(widths));
    kernel->set_spread(Spread(own));
    // Fewer runs may be that long than there are of all, and are widened by more.
    kernel->set_resolution(
        std::min(ResolutionFrom(kernel->seconds(), kernel->run_seconds(), same), calibration.resolution()));
  }
  v1::DeviceInfo device;
  *device.mutable_calibration() = calibration;
  const auto compare = [&](const PairedRun& run) {
    return measure::Compare(run.ratio, run.low, run.high, measure::ResolutionOf(device, run.seconds, run.run_seconds));
  };
  int as_same = 0, covered = 0, covered_alone = 0;
  for (const PairedRun& run : same) {
    v1::CalibrationKernel& kernel = *Find(run.kernel, &calibration);
    if (compare(run) == v1::COMPARISON_SAME) {
      kernel.set_same(kernel.same() + 1);
      ++as_same;
    }
    covered_alone += Holds(run.low, run.high) ? 1 : 0;
    double low = run.low, high = run.high;
    measure::Widen(run.ratio, ResolutionFrom(kernel.seconds(), kernel.run_seconds(), same, &run), &low, &high);
    if (Holds(low, high)) {
      kernel.set_covered(kernel.covered() + 1);
      ++covered;
    }
  }
  const int runs = calibration.runs();
  if (runs > 0) {
    calibration.set_same_share(static_cast<double>(as_same) / runs);
    calibration.set_coverage(static_cast<double>(covered) / runs);
    calibration.set_runs_coverage(static_cast<double>(covered_alone) / runs);
  }
  if (runs < kFewRuns) {
    calibration.add_warnings(
        absl::StrCat("only ", runs, " A/A runs: too few to say where 95 % of them lie (", kFewRuns, " do)"));
  } else if (ChanceOfAtMost(covered, runs) < kChance) {
    calibration.add_warnings(
        absl::StrFormat("the 95 %% intervals held the truth in %d of %d runs only: times drift here, so read intervals "
                        "as narrower than they should be",
                        covered, runs));
  }
  calibration.set_detection_runs(static_cast<int>(planted.size()));
  if (!planted.empty()) {
    int found = 0;
    for (const PairedRun& run : planted) {
      found += compare(run) == v1::COMPARISON_SLOWER ? 1 : 0;
      calibration.set_detection_sampling_seconds(
          std::max(calibration.detection_sampling_seconds(), run.sampling_seconds));
    }
    calibration.set_detection_slowdown(slowdown);
    calibration.set_detection_share(static_cast<double>(found) / static_cast<double>(planted.size()));
    if (calibration.detection_share() < kShare) {
      calibration.add_warnings(absl::StrFormat("a planted slowdown of %g %% was found in %d of %d runs only",
                                               100 * slowdown, found, static_cast<int>(planted.size())));
    }
  }
  return calibration;
}

std::string CalibrationKey(const v1::DeviceInfo& device) {
  return Sha256HexOfParts({absl::StrCat(device.kind()), device.name(), device.arch(), device.uuid(), device.driver(),
                           device.torch(), kVersion, kMeaning});
}

std::optional<v1::Calibration> LoadCalibration(const std::string& folder, const std::string& key, std::string* why) {
  why->clear();
  auto text = ReadFile(absl::StrCat(folder, "/", kFile), 1 << 20);
  if (!text.ok()) {
    if (!absl::IsNotFound(text.status())) *why = std::string(text.status().message());
    return std::nullopt;
  }
  const nlohmann::json body = nlohmann::json::parse(*text, nullptr, false);
  v1::Calibration calibration;
  if (!body.is_object() || !body.contains("calibration") || !body.contains("key")) {
    *why = absl::StrCat(folder, "/", kFile, " is no calibration");
    return std::nullopt;
  }
  if (body["key"] != key) {
    *why = "device, driver, torch or grove have changed since it was calibrated";
    return std::nullopt;
  }
  if (!google::protobuf::util::JsonStringToMessage(body["calibration"].dump(), &calibration).ok()) {
    *why = absl::StrCat(folder, "/", kFile, " is no calibration");
    return std::nullopt;
  }
  return calibration;
}

absl::Status SaveCalibration(const std::string& folder, const std::string& key, const v1::Calibration& calibration) {
  std::string text;
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  const auto status = google::protobuf::util::MessageToJsonString(calibration, &text, options);
  if (!status.ok()) return absl::InternalError(std::string(status.message()));
  const nlohmann::json body = {{"key", key}, {"calibration", nlohmann::json::parse(text)}};
  return WriteFileAtomically(absl::StrCat(folder, "/", kFile), absl::StrCat(body.dump(2), "\n"));
}

v1::Calibration Compact(const v1::Calibration& calibration) {
  v1::Calibration compact = calibration;
  compact.clear_kernels();
  for (const v1::CalibrationKernel& kernel : calibration.kernels()) {
    v1::CalibrationKernel* kept = compact.add_kernels();
    kept->set_name(kernel.name());
    kept->set_seconds(kernel.seconds());
    kept->set_run_seconds(kernel.run_seconds());
    kept->set_resolution(kernel.resolution());
  }
  compact.clear_warnings();
  return compact;
}

}  // namespace grove::worker
