// The values of flags that need a grammar: tolerances, limits, baselines, generators. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "grove/v1/tree.pb.h"
#include "grove/v1/types.pb.h"

namespace grove::cli {

// All errors are INVALID_ARGUMENT with one line: the flag, what it was given, what it takes.

absl::StatusOr<double> ParseDuration(absl::string_view text);  // "10", "10s", "500ms", "2m", "1h" in seconds; > 0
absl::StatusOr<int64_t> ParseBytes(absl::string_view text);    // "1048576", "512MiB", "4G" (powers of 1024); > 0

// --tolerance scaled | ATOL,RTOL
absl::StatusOr<v1::Tolerance> ParseTolerance(absl::string_view text);

// --precision same | reduced[,TOL]; "" leaves the options as they are
absl::Status ParsePrecision(absl::string_view text, v1::EvaluationOptions* options);

// --work anything | libraries | own_kernels, the names of v1::WorkPolicy; "" is UNSPECIFIED
absl::StatusOr<v1::WorkPolicy> ParseWork(absl::string_view text);
std::vector<std::string> WorkPolicyNames();  // from WORK_POLICY_ANYTHING on, in the enum's order

// --cache cold | warm; "" is UNSPECIFIED
absl::StatusOr<v1::CachePolicy> ParseCache(absl::string_view text);

// --distributions, each given,scaled,shifted,sparse,outliers,rare,integers in any number
absl::StatusOr<std::vector<v1::InputDistribution>> ParseDistributions(const std::vector<std::string>& texts);

// --baseline eager | compile | all
absl::StatusOr<std::vector<v1::Baseline>> ParseBaselines(absl::string_view text);

// --limit NAME=VALUE. NAME is a field of v1::Limits; *_seconds takes a duration, *_bytes a size, the others a count.
absl::Status ApplyLimit(absl::string_view text, v1::Limits* limits);
std::vector<std::string> LimitNames();

// --device, for an evaluation: "" or "auto", "cpu", "cuda" (and "cuda:N", whose N matters only to a worker).
struct DeviceArgument {
  v1::DeviceKind kind = v1::DEVICE_KIND_UNSPECIFIED;  // unspecified = auto
  int index = -1;                                     // -1 = not said
};
absl::StatusOr<DeviceArgument> ParseDevice(absl::string_view text);

// --generator catalogue | openai | replay:FILE. The recording itself is read by the caller.
struct GeneratorArgument {
  v1::GeneratorKind kind = v1::GENERATOR_KIND_CATALOGUE;
  std::string recording_file;  // only REPLAY
};
absl::StatusOr<GeneratorArgument> ParseGenerator(absl::string_view text);

}  // namespace grove::cli
