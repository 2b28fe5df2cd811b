// What a calibration makes of its runs, and the file that keeps it. Pure but for Load and Save.
//
// An A/A run times one kernel against itself: both sides the same source, in processes of their own, in alternation, as
// `grove compare` does it. From many of them follow
//   resolution   of a kernel, the larger of two: how far from 1 the next ratio will be with 95 % (Student's t of the
//                runs, times the root mean square of their logarithms), and the smallest r at which 95 % of its runs,
//                and one more, are SAME; few runs widen that by 1.5 / runs. Rounded up to two digits, never below
//                kFinestResolution. Of calls and runs of some length, the worst of all kernels that are about as long
//                in both or longer (measure::ResolutionOf); of the device, of all.
//   coverage     the share of intervals that hold 1, which is true here; each widened (measure::Widen) by what the
//                other runs give, as an interval to come will be. Nominal 95 %.
// A planted run times a kernel against itself with `slowdown` more work; detection_share is the share that comes out as
// SLOWER at that resolution. docs/comparing.md derives it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "grove/v1/types.pb.h"

namespace grove::worker {

// Below this nothing is told apart: clocks step by 1 % and more, and nobody needs a thousandth.
inline constexpr double kFinestResolution = 0.001;
// Fewer A/A runs do not say where 95 % lie.
inline constexpr int kFewRuns = 20;

struct PairedRun {
  std::string kernel;
  double seconds = 0;                   // of one call of the slower side, median
  double ratio = 0, low = 0, high = 0;  // rival's time over the candidate's, and its interval
  double run_seconds = 0;               // of one timed run
  double sampling_seconds = 0;          // of all timed runs together, with what lies between them
};

// Of one kernel.
double ResolutionOfRuns(const std::vector<PairedRun>& same);

// Everything but bandwidth, rates, launch and time. Runs without figures are not to be passed.
v1::Calibration Summarise(const std::vector<PairedRun>& same, const std::vector<PairedRun>& planted, double slowdown);

// What a calibration holds for: another driver, torch, device or version of grove voids it.
std::string CalibrationKey(const v1::DeviceInfo& device);

// The device's calibration in that folder; nothing when there is none, or it is void or unreadable (`why` says which).
std::optional<v1::Calibration> LoadCalibration(const std::string& folder, const std::string& key, std::string* why);
absl::Status SaveCalibration(const std::string& folder, const std::string& key, const v1::Calibration& calibration);

// For every result: without warnings, and of each kernel its resolutions alone.
v1::Calibration Compact(const v1::Calibration& calibration);

}  // namespace grove::worker
