// What a request must look like before the engine sees it: ids that are ids, sizes within the limits of proto/grove/v1,
// numbers that are numbers. INVALID_ARGUMENT says which field, what is wrong and what would be right;
// RESOURCE_EXHAUSTED names the limit. Whether the job makes sense (a known policy, a parsable problem) is the engine's
// and the worker's business. Pure functions.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "grove/v1/services.pb.h"

namespace grove::coordinator {

inline constexpr std::size_t kMaxSourceBytes = std::size_t{1} << 20;  // types.proto: Problem.source, Candidate.source
inline constexpr std::size_t kMaxRecordingBytes = std::size_t{16} << 20;  // tree.proto: GeneratorSpec.recording
inline constexpr int kMaxCandidates = 10'000;                             // tree.proto: EvalSpec.candidates
inline constexpr std::size_t kMaxNameBytes = 256;                         // labels: a file name's usual limit
inline constexpr int kMaxListed = 10'000;                                 // ListJobs: answers stay far below a message
inline constexpr int kMaxBuildFlags = 64;
inline constexpr std::size_t kMaxBuildFlagBytes = 512;

absl::Status ValidateSubmit(const v1::SubmitJobRequest& request);
absl::Status ValidateJobId(absl::string_view id);   // an id or a prefix of at least 3 characters
absl::Status ValidateNodeId(absl::string_view id);  // "<job>/k<n>" or "<job>/i<n>"
absl::Status ValidateBankId(absl::string_view id);
absl::Status ValidateSha256(absl::string_view hash);
absl::Status ValidateListJobs(const v1::ListJobsRequest& request);
absl::Status ValidateResume(const v1::ResumeJobRequest& request);
absl::Status ValidateAddBankEntry(const v1::AddBankEntryRequest& request);
absl::Status ValidateHello(const v1::WorkerHello& hello);

}  // namespace grove::coordinator
