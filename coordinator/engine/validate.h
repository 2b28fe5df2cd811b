// What may be submitted. Errors are INVALID_ARGUMENT or RESOURCE_EXHAUSTED and say which field, what is wrong with it
// and what to do.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "grove/v1/services.pb.h"

namespace grove::coordinator {

inline constexpr size_t kMaxSourceBytes = 1 << 20;      // types.proto: problem and candidate
inline constexpr size_t kMaxRecordingBytes = 16 << 20;  // tree.proto: GeneratorSpec.recording
inline constexpr int kMaxCalibrationRuns = 1000;
inline constexpr int kMaxCandidates = 10'000;              // tree.proto: EvalSpec.candidates
inline constexpr size_t kMaxJobBytes = size_t{128} << 20;  // one job's sources together: held in memory for one turn

using PolicyCheck = std::function<std::optional<std::string>(const v1::SearchPolicy&)>;

absl::Status ValidateSubmit(const v1::SubmitJobRequest& request, const PolicyCheck& check_policy);

// `where` names the candidate in the message, such as "candidate 3 (fast.cu)".
absl::Status ValidateCandidate(const v1::Candidate& candidate, v1::DeviceKind device, const std::string& where);

// The device that a candidate of this format needs; UNSPECIFIED when any will do.
v1::DeviceKind DeviceOfFormat(v1::CandidateFormat format);

}  // namespace grove::coordinator
