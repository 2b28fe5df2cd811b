// Comparisons and calibrations for people and as documents of --json. Pure; docs/cli.md lists the fields.
#pragma once

#include <string>

#include "absl/types/span.h"
#include "clients/cli/exit_code.h"
#include "clients/cli/text.h"
#include "grove/v1/tree.pb.h"

namespace grove::cli {

// "FASTER"; "" for none.
std::string ComparisonName(v1::Comparison comparison);
// "0.8 %".
std::string FormatPercent(double share);

// `grove compare`: every kernel against the job's rival, and both against the reference.
std::string RenderComparison(const v1::Job& job, const v1::KernelNode& kernel, const Style& style);
std::string CompareDocument(const v1::Job& job, absl::Span<const v1::KernelNode> kernels, ExitCode code);

// `grove calibrate`.
std::string RenderCalibration(const v1::DeviceCalibrated& calibrated, const Style& style);
std::string CalibrateDocument(const v1::Job& job, const v1::DeviceCalibrated& calibrated, ExitCode code);

// "0.8 %, calibrated 2 h ago", "3 % (never calibrated: `grove calibrate`)".
std::string ResolutionLine(const v1::DeviceInfo& device, int64_t now_unix_nanos);

}  // namespace grove::cli
