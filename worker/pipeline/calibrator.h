// The course of a calibration: rates, then kernels against themselves and against slowed copies, in turn, so that all
// of them see the same drift. It evaluates through what it is given, so that a test can play the device.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grove/v1/services.pb.h"

namespace grove::worker {

// Eight of each kernel. With 27 planted ones they fit into the time below where one takes 6 s (4.3 s on an H200:
// docs/results/gpu-h200-history.md).
inline constexpr int kCalibrationRuns = 40;
inline constexpr absl::Duration kCalibrationTime = absl::Seconds(420);
inline constexpr double kPlantedSlowdown = 0.02;

struct CalibrationHost {
  // Build, check and time: a result with whatever verdict, or why there is none.
  std::function<absl::StatusOr<v1::EvaluationResult>(const v1::EvaluateWork& work)> evaluate;
  // Bandwidth, rates, launch cost.
  std::function<absl::StatusOr<v1::Calibration>(absl::Duration budget)> rates;
  std::function<void(const std::string& stage, const std::string& detail)> progress;
  std::function<bool()> cancelled;
  std::function<absl::Time()> now;
};

// CANCELLED; FAILED_PRECONDITION when the kernels cannot be run here, which another attempt would not mend; otherwise
// an infrastructure failure.
absl::StatusOr<v1::Calibration> Calibrate(v1::DeviceKind device, const v1::CalibrateWork& work,
                                          const CalibrationHost& host);

}  // namespace grove::worker
