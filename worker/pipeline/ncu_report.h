// What Nsight Compute is asked for, and the reader of what it answers (`--csv --page raw`). Pure.
//
// It comes out of the candidate's sandbox, so it may be anything: forged, cut, of any size, mixed with the candidate's
// own words. It is shown to people and models and decides nothing.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "grove/v1/types.pb.h"

namespace grove::worker {

inline constexpr int kMaxProfiledKernels = 16;  // KernelProfiles of a report
inline constexpr int kMaxStalls = 5;            // reasons of each, those with a share of 1 % at least
inline constexpr int kMaxProfiledLaunches = 32;
inline constexpr size_t kMaxNcuText = size_t{8} << 20;

// The metrics by name, for --metrics. `arch` as in DeviceInfo: later chips have a few more. Names are those of
// ncu --query-metrics, the same since sm_70 but for the tensor pipe.
std::string NcuMetrics(const std::string& arch);
// Sections that hold the same figures, whatever a chip calls them: dearer, for where a metric has another name.
std::vector<std::string> NcuSections();

struct NcuReport {
  // Launches of the same kernel, grid and block as one: times added up, the rest their means by time. The longest
  // first. `own` and `local_bytes` are not known to it.
  std::vector<v1::KernelProfile> kernels;
  int launches = 0;
  // Its first complaint, when it made one: "ERR_NVGPUCTRPERM - The user does not have permission ...".
  std::string error;
  bool not_permitted = false;   // that complaint is about the driver's restriction
  bool unknown_metric = false;  // ... or about a metric that this chip has not
};

// Never fails: what is no row of its table is skipped. Reads kMaxNcuText bytes at most.
NcuReport ParseNcu(absl::string_view text);

}  // namespace grove::worker
