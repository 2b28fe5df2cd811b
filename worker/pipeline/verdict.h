// From what judge and sandbox say to one EvaluationResult. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "grove/v1/types.pb.h"
#include "worker/build/builder.h"
#include "worker/pipeline/health.h"
#include "worker/sandbox/sandbox.h"

namespace grove::worker {

// The judge's JSON as a message; unknown fields are ignored. INTERNAL when it is no EvaluationResult or has no verdict.
absl::StatusOr<v1::EvaluationResult> ParseResult(const nlohmann::json& body);
absl::StatusOr<v1::ProblemDescription> ParseDescription(const nlohmann::json& body);
// `message` in the JSON mapping that the judge reads: original names.
absl::StatusOr<nlohmann::json> ToJson(const google::protobuf::Message& message);

// Whether a candidate whose turn ended so may have left the device in any state. BUILD_FAILED is of a candidate that
// ran: its own word that it could not be loaded, which it may give at any time, after whatever it did.
bool IsFault(v1::Verdict verdict);
// Whether the device itself may be the reason.
bool IsDoubtful(v1::Verdict verdict);

// Completes the judge's result with how the candidate's sandbox ended. `gone`: the judge saw the socket close. The
// verdict changes only when the sandbox knows better: a limit that was hit is LIMIT_EXCEEDED (TIMED_OUT for wall time)
// by its name, a signal or exit code is named in CRASHED. `quiet`: nothing that the candidate wrote is told.
void MergeEnding(const sandbox::Ending& ending, bool gone, bool quiet, v1::EvaluationResult* result);

// Names the application's Xids of its run in a verdict that they explain.
void MergeXids(const XidFindings& xids, v1::EvaluationResult* result);
// How many processes of others held the device: into what was timed, and where timing was not possible into the reason.
void MergeForeign(int foreign, v1::EvaluationResult* result);

// What became of the rival: completes what the judge says of it (`result->rival`) by its build and how its sandbox
// ended. Where it is not CORRECT, the timing says why there is no figure against it.
void MergeRival(const build::BuildOutcome* built, const sandbox::Ending* ending, bool gone, bool quiet,
                v1::EvaluationResult* result);
// Names it and says in the result's reason how the two compare, or that they do not. After the comparisons are filled
// in.
void FinishRival(const v1::Candidate& rival, v1::EvaluationResult* result);

absl::StatusOr<v1::Calibration> ParseCalibration(const nlohmann::json& body);

// The result of a candidate that was not built.
v1::EvaluationResult ResultOfFailedBuild(const build::BuildOutcome& outcome);

// On a calibrated device, and of scripts on any GPU: makes intervals of figures from one pair of processes hold what
// equal programs differ by there (measure::Widen), in the texts too. After the comparisons are filled in. `script`: as
// measure::FillComparisons has it.
void WidenIntervals(bool script, v1::EvaluationResult* result);

// Cuts every text to its bound and makes it UTF-8: what comes from a sandbox may be neither.
void Sanitise(v1::EvaluationResult* result);
std::string RepairUtf8(std::string text, size_t max_bytes);

}  // namespace grove::worker
