// How two times compare: by the interval of their ratio and by what the device can tell apart. Pure.
//
// A ratio is reference time over candidate time, so above 1 the candidate is faster. With the resolution r, the
// smallest difference that the device tells from none:
//   FASTER   the ratio is above 1 + r, and the whole interval above 1
//   SLOWER   the ratio is below 1 / (1 + r), and the whole interval below 1
//   SAME     the ratio is within [1 / (1 + r), 1 + r], and the whole interval within the squares of these
//   UNCLEAR  anything else: more samples, or a calibrated device, may tell
// The rule is even: who swaps the sides swaps FASTER and SLOWER. docs/comparing.md derives it.
#pragma once

#include "grove/v1/types.pb.h"

namespace grove::measure {

// Where a device was never calibrated. Twice and more of what calibrations found on quiet machines
// (docs/results/gpu-h200-history.md; a CPU shares its caches and clocks with whatever else runs), so that a machine
// that nobody looked at claims too little and not too much.
inline constexpr double kDefaultResolutionCuda = 0.03;
inline constexpr double kDefaultResolutionCpu = 0.10;
// Calibrations are made with native programs. Two processes of one script differ by more on a GPU (an interpreter, an
// allocator, what a library chose): of KernelBench's problems as their own candidates 237 and 244 of 249 intervals held
// 1 with this, and 213 and 229 without it (docs/results/kernelbench-h200.md).
inline constexpr double kScriptResolutionCuda = 0.03;

// UNSPECIFIED for figures that are none: not finite, not positive, or a ratio outside its interval.
v1::Comparison Compare(double ratio, double low, double high, double resolution);

// Calls, and runs, that take this share of a calibrated kernel's and more count as being as long as those.
inline constexpr double kAboutAsLong = 0.8;

// The device's calibrated resolution, else the default of its kind. What limits it becomes less with the length of a
// call (a launch and the gap before it differ from process to process) and with that of a timed run (so does what
// asking for one costs), so calls of `seconds` in runs of `run_seconds` have that of the best calibrated kernel which
// is no longer in either; where there is none, and for 0, that of the worst.
double ResolutionOf(const v1::DeviceInfo& device, double seconds = 0, double run_seconds = 0);

// Of a timed run of the faster side. A slower one makes as many calls, or fewer in about as long a run.
double RunSeconds(const v1::TimingReport& timing, const v1::BaselineTiming& baseline);

// Sets resolution and comparison of every baseline that has figures, from result.device. `script`: where one of the two
// sides that are compared with the reference or with each other is a candidate in Python. From several pairs of
// processes (replicas) its interval knows by itself what those differ by.
void FillComparisons(v1::EvaluationResult* result, bool script = false);

// The interval of a figure from one pair of processes, as wide as equal programs in processes of their own were seen to
// differ: `resolution` to either side, where its pairs of runs alone say less. Returns whether it did. Compare says the
// same of both.
bool Widen(double ratio, double resolution, double* low, double* high);

// The ranking figures of a result: its first baseline, null unless it is CORRECT and was timed against it.
const v1::BaselineTiming* Ranking(const v1::EvaluationResult& result);

// Its figures against a rival, null when there are none.
const v1::BaselineTiming* AgainstRival(const v1::EvaluationResult& result);

}  // namespace grove::measure
