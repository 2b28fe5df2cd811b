#include "clients/cli/exit_code.h"

#include <algorithm>
#include <vector>

#include "common/measure/comparison.h"

namespace grove::cli {
namespace {

int Seriousness(ExitCode code) {
  switch (code) {
    case ExitCode::kOk:
      return 0;
    case ExitCode::kProblem:
    case ExitCode::kUnclear:
      return 1;
    case ExitCode::kSlower:
      return 2;
    case ExitCode::kUnmeasurable:
      return 3;
    case ExitCode::kBuildFailed:
      return 4;
    case ExitCode::kWrong:
      return 5;
    case ExitCode::kTimedOut:
      return 6;
    case ExitCode::kLimitExceeded:
      return 7;
    case ExitCode::kCrashed:
      return 8;
    case ExitCode::kCheated:
      return 9;
    case ExitCode::kAuditMissed:
    case ExitCode::kInfrastructure:
      return 10;
    case ExitCode::kUsage:
      return 11;
    case ExitCode::kUnreachable:
      return 12;
    case ExitCode::kInterrupted:
      return 13;
  }
  return 10;
}

}  // namespace

ExitCode ExitCodeOf(v1::Verdict verdict) {
  switch (verdict) {
    case v1::VERDICT_CORRECT:
      return ExitCode::kOk;
    case v1::VERDICT_BUILD_FAILED:
      return ExitCode::kBuildFailed;
    case v1::VERDICT_CRASHED:
      return ExitCode::kCrashed;
    case v1::VERDICT_WRONG:
      return ExitCode::kWrong;
    case v1::VERDICT_TIMED_OUT:
      return ExitCode::kTimedOut;
    case v1::VERDICT_LIMIT_EXCEEDED:
      return ExitCode::kLimitExceeded;
    case v1::VERDICT_CHEATED:
      return ExitCode::kCheated;
    case v1::VERDICT_UNMEASURABLE:
      return ExitCode::kUnmeasurable;
    default:
      return ExitCode::kInfrastructure;
  }
}

ExitCode ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return ExitCode::kOk;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kResourceExhausted:  // too large, too many
      return ExitCode::kUsage;
    case absl::StatusCode::kUnavailable:
      // It was reached, and cannot do its work now (client::IsAnswered; by name, because this file knows no gRPC).
      if (status.GetPayload("grove/answered").has_value()) return ExitCode::kInfrastructure;
      return ExitCode::kUnreachable;
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
      return ExitCode::kUnreachable;
    case absl::StatusCode::kCancelled:
      return ExitCode::kInterrupted;
    default:
      return ExitCode::kInfrastructure;
  }
}

ExitCode Worst(absl::Span<const ExitCode> codes) {
  ExitCode worst = ExitCode::kOk;
  for (ExitCode code : codes) {
    if (Seriousness(code) > Seriousness(worst)) worst = code;
  }
  return worst;
}

ExitCode ExitCodeOfFailedJob(const v1::Job& job) {
  switch (job.state()) {
    case v1::JOB_STATE_CANCELLED:
      return ExitCode::kInterrupted;
    case v1::JOB_STATE_FAILED:
      // FAILED means that the request cannot be served as it stands: the problem is invalid, or the generator does not
      // know the operation. Both are the caller's to change.
      return ExitCode::kUsage;
    default:
      return ExitCode::kInfrastructure;
  }
}

ExitCode ExitCodeOfEval(const v1::Job& job, absl::Span<const v1::KernelNode> kernels) {
  if (job.state() != v1::JOB_STATE_DONE) return ExitCodeOfFailedJob(job);
  if (kernels.empty()) return ExitCode::kInfrastructure;
  std::vector<ExitCode> codes;
  for (const v1::KernelNode& kernel : kernels) codes.push_back(ExitCodeOf(kernel.result().verdict()));
  return Worst(codes);
}

ExitCode ExitCodeOfCompare(const v1::Job& job, absl::Span<const v1::KernelNode> kernels) {
  if (job.state() != v1::JOB_STATE_DONE) return ExitCodeOfFailedJob(job);
  if (kernels.empty()) return ExitCode::kInfrastructure;
  std::vector<ExitCode> codes;
  for (const v1::KernelNode& kernel : kernels) {
    const v1::EvaluationResult& result = kernel.result();
    codes.push_back(ExitCodeOf(result.verdict()));
    if (result.verdict() != v1::VERDICT_CORRECT) continue;
    const v1::BaselineTiming* timing = measure::AgainstRival(result);
    if (timing == nullptr) {
      // The rival's own verdict says why; a CORRECT one without figures could not be measured.
      const v1::Verdict rival = result.rival().verdict();
      codes.push_back(rival == v1::VERDICT_CORRECT ? ExitCode::kUnmeasurable : ExitCodeOf(rival));
    } else if (timing->comparison() == v1::COMPARISON_SLOWER) {
      codes.push_back(ExitCode::kSlower);
    } else if (timing->comparison() == v1::COMPARISON_UNCLEAR) {
      codes.push_back(ExitCode::kUnclear);
    }
  }
  return Worst(codes);
}

ExitCode ExitCodeOfSearch(const v1::Job& job) {
  if (!job.best_node().empty()) {
    if (job.state() == v1::JOB_STATE_CANCELLED) return ExitCode::kInterrupted;
    return ExitCode::kOk;
  }
  if (job.state() != v1::JOB_STATE_DONE) return ExitCodeOfFailedJob(job);
  ExitCode best = ExitCode::kInfrastructure;
  for (const auto& [verdict, count] : job.counts().verdicts()) {
    if (count <= 0) continue;
    const ExitCode code = ExitCodeOf(static_cast<v1::Verdict>(verdict));
    if (Seriousness(code) < Seriousness(best)) best = code;
  }
  return best;
}

}  // namespace grove::cli
