#include "worker/pipeline/calibrator.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/measure/comparison.h"
#include "worker/pipeline/calibration.h"
#include "worker/pipeline/calibration_kernels.h"

namespace grove::worker {
namespace {

constexpr double kRatesShare = 1.0 / 6;  // of the time
constexpr int kTrials = 2;               // of the check: the kernels are our own
// A slowed copy is timed after two of three A/A runs: 20 and more of them say whether 19 in 20 are found.
constexpr int kSame = 3, kPlanted = 2;
// So many runs without figures in a row mean that there will be none.
constexpr int kMaxFailures = 5;
// Steps are scaled by no more than this: beyond it the first run was disturbed.
constexpr double kMaxScale = 16;

class Course {
 public:
  Course(v1::DeviceKind device, const v1::CalibrateWork& work, const CalibrationHost& host)
      : device_(device),
        host_(host),
        runs_(work.runs() > 0 ? work.runs() : kCalibrationRuns),
        begin_(host.now()),
        time_(work.max_seconds() > 0 ? absl::Seconds(work.max_seconds()) : kCalibrationTime),
        cases_(CalibrationCases(device)) {}

  absl::StatusOr<v1::Calibration> Run() {
    GROVE_ASSIGN_OR_RETURN(const v1::Calibration rates, host_.rates(time_ * kRatesShare));
    for (CalibrationCase& one : cases_) GROVE_RETURN_IF_ERROR(Scale(&one));
    const size_t planted = PlantedCase(cases_);
    for (int run = 0; run < runs_ && !Late(); ++run) {
      host_.progress("calibrate", absl::StrCat("run ", run + 1, " of ", runs_));
      const CalibrationCase& one = cases_[static_cast<size_t>(run) % cases_.size()];
      GROVE_RETURN_IF_ERROR(Pair(one, one.steps, &same_));
      if (run % kSame >= kPlanted || Late()) continue;
      const CalibrationCase& slowed = cases_[planted];
      const auto steps = static_cast<int64_t>(std::llround(static_cast<double>(slowed.steps) * (1 + kPlantedSlowdown)));
      GROVE_RETURN_IF_ERROR(Pair(slowed, steps, &planted_));
    }
    if (same_.empty()) {
      return absl::DeadlineExceededError(
          absl::StrCat("no run ended within ", absl::FormatDuration(time_), "; give it more time (--max-seconds)"));
    }
    v1::Calibration calibration = Summarise(same_, planted_, kPlantedSlowdown);
    calibration.set_time_unix_nanos(absl::ToUnixNanos(host_.now()));
    calibration.set_seconds(absl::ToDoubleSeconds(host_.now() - begin_));
    calibration.set_bandwidth_bytes_per_second(rates.bandwidth_bytes_per_second());
    calibration.set_launch_seconds(rates.launch_seconds());
    *calibration.mutable_rates() = rates.rates();
    return calibration;
  }

 private:
  // No time for another run, by the longest so far that gave figures.
  bool Late() const { return host_.now() - begin_ + longest_ >= time_; }

  // One evaluation of a case with so many steps against itself as it stands.
  absl::StatusOr<v1::EvaluationResult> Evaluate(const CalibrationCase& one, int64_t steps, bool brief) {
    if (host_.cancelled()) return absl::CancelledError("cancelled");
    v1::EvaluateWork work;
    *work.mutable_problem() = one.problem;
    *work.mutable_candidate() = CalibrationCandidate(device_, steps);
    *work.mutable_rival() = CalibrationCandidate(device_, one.steps);
    v1::EvaluationOptions& options = *work.mutable_options();
    options.set_device(device_);
    options.set_trials(kTrials);
    options.set_only_given_inputs(true);
    options.add_baselines(v1::BASELINE_RIVAL);
    if (brief) {
      options.set_min_time_seconds(0.05);
      options.set_max_time_seconds(0.1);
    }
    GROVE_ASSIGN_OR_RETURN(v1::EvaluationResult result, host_.evaluate(work));
    if (host_.cancelled()) return absl::CancelledError("cancelled");
    if (result.verdict() == v1::VERDICT_BUILD_FAILED) {
      return absl::FailedPreconditionError(absl::StrCat("the calibration kernels do not build here: ", result.reason(),
                                                        "; `grove doctor` says what is missing"));
    }
    return result;
  }

  absl::Status Failed(const v1::EvaluationResult& result) {
    const std::string why = result.verdict() != v1::VERDICT_CORRECT ? result.reason() : result.rival().reason();
    if (++failures_ < kMaxFailures) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrCat(failures_, " runs in a row gave no figures, the last: ", why.empty() ? "no reason" : why));
  }

  // So that a call takes about its target here.
  absl::Status Scale(CalibrationCase* one) {
    if (one->target_seconds <= 0) return absl::OkStatus();
    host_.progress("calibrate", absl::StrCat("scaling: ", one->name));
    GROVE_ASSIGN_OR_RETURN(const v1::EvaluationResult result, Evaluate(*one, one->steps, /*brief=*/true));
    const v1::BaselineTiming* timing = measure::AgainstRival(result);
    if (timing == nullptr) {
      host_.progress("calibrate", absl::StrCat("not scaled: ", one->name, ": ", result.reason()));
      return Failed(result);
    }
    failures_ = 0;
    const double scale = std::clamp(one->target_seconds / timing->candidate_median_seconds(), 1 / kMaxScale, kMaxScale);
    const double rounds = static_cast<double>(one->steps) * scale / static_cast<double>(one->step_unit);
    one->steps = one->step_unit * std::max<int64_t>(1, std::llround(rounds));
    return absl::OkStatus();
  }

  absl::Status Pair(const CalibrationCase& one, int64_t steps, std::vector<PairedRun>* runs) {
    const absl::Time begin = host_.now();
    GROVE_ASSIGN_OR_RETURN(const v1::EvaluationResult result, Evaluate(one, steps, /*brief=*/false));
    const v1::BaselineTiming* timing = measure::AgainstRival(result);
    if (timing == nullptr || !(timing->speedup_low() > 0)) return Failed(result);
    longest_ = std::max(longest_, host_.now() - begin);
    failures_ = 0;
    runs->push_back({one.name, std::max(timing->candidate_median_seconds(), timing->reference_median_seconds()),
                     timing->speedup(), timing->speedup_low(), timing->speedup_high(),
                     measure::RunSeconds(result.timing(), *timing), result.timing().sampling_seconds()});
    return absl::OkStatus();
  }

  const v1::DeviceKind device_;
  const CalibrationHost& host_;
  const int runs_;
  const absl::Time begin_;
  const absl::Duration time_;
  std::vector<CalibrationCase> cases_;
  std::vector<PairedRun> same_, planted_;
  absl::Duration longest_;  // of a run
  int failures_ = 0;        // in a row
};

}  // namespace

absl::StatusOr<v1::Calibration> Calibrate(v1::DeviceKind device, const v1::CalibrateWork& work,
                                          const CalibrationHost& host) {
  return Course(device, work, host).Run();
}

}  // namespace grove::worker
