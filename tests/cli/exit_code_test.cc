#include "clients/cli/exit_code.h"

#include <catch2/catch.hpp>

namespace grove::cli {
namespace {

v1::KernelNode Judged(v1::Verdict verdict) {
  v1::KernelNode kernel;
  kernel.mutable_result()->set_verdict(verdict);
  return kernel;
}

TEST_CASE("Each verdict has the exit code of the contract", "[cli]") {
  CHECK(static_cast<int>(ExitCodeOf(v1::VERDICT_CORRECT)) == 0);
  CHECK(static_cast<int>(ExitCodeOf(v1::VERDICT_BUILD_FAILED)) == 10);
  CHECK(static_cast<int>(ExitCodeOf(v1::VERDICT_WRONG)) == 11);
  CHECK(static_cast<int>(ExitCodeOf(v1::VERDICT_TIMED_OUT)) == 12);
  CHECK(static_cast<int>(ExitCodeOf(v1::VERDICT_CRASHED)) == 13);
  CHECK(static_cast<int>(ExitCodeOf(v1::VERDICT_CHEATED)) == 14);
  CHECK(static_cast<int>(ExitCodeOf(v1::VERDICT_LIMIT_EXCEEDED)) == 15);
  CHECK(static_cast<int>(ExitCodeOf(v1::VERDICT_UNMEASURABLE)) == 16);
  CHECK(static_cast<int>(ExitCodeOf(v1::VERDICT_UNSPECIFIED)) == 20);
}

TEST_CASE("Failed calls are usage, unreachable, interrupted or infrastructure", "[cli]") {
  CHECK(ExitCodeOf(absl::OkStatus()) == ExitCode::kOk);
  CHECK(ExitCodeOf(absl::InvalidArgumentError("")) == ExitCode::kUsage);
  CHECK(ExitCodeOf(absl::NotFoundError("")) == ExitCode::kUsage);
  CHECK(ExitCodeOf(absl::FailedPreconditionError("")) == ExitCode::kUsage);
  CHECK(ExitCodeOf(absl::ResourceExhaustedError("")) == ExitCode::kUsage);
  CHECK(ExitCodeOf(absl::UnavailableError("")) == ExitCode::kUnreachable);
  CHECK(ExitCodeOf(absl::DeadlineExceededError("")) == ExitCode::kUnreachable);
  CHECK(ExitCodeOf(absl::UnauthenticatedError("")) == ExitCode::kUnreachable);
  absl::Status answered = absl::UnavailableError("the coordinator's store cannot be written");
  answered.SetPayload("grove/answered", absl::Cord());
  CHECK(ExitCodeOf(answered) == ExitCode::kInfrastructure);
  CHECK(ExitCodeOf(absl::CancelledError("")) == ExitCode::kInterrupted);
  CHECK(ExitCodeOf(absl::InternalError("")) == ExitCode::kInfrastructure);
  CHECK(ExitCodeOf(absl::UnimplementedError("")) == ExitCode::kInfrastructure);
}

TEST_CASE("The worst of several is the documented order, whatever theirs", "[cli]") {
  const std::vector<ExitCode> order = {ExitCode::kOk,      ExitCode::kUnmeasurable, ExitCode::kBuildFailed,
                                       ExitCode::kWrong,   ExitCode::kTimedOut,     ExitCode::kLimitExceeded,
                                       ExitCode::kCrashed, ExitCode::kCheated,      ExitCode::kInfrastructure,
                                       ExitCode::kUsage,   ExitCode::kUnreachable,  ExitCode::kInterrupted};
  for (size_t i = 0; i < order.size(); ++i) {
    for (size_t j = 0; j < order.size(); ++j) {
      CHECK(Worst({order[i], order[j]}) == order[std::max(i, j)]);
    }
  }
  CHECK(Worst({}) == ExitCode::kOk);
}

TEST_CASE("An eval ends as its worst candidate", "[cli]") {
  v1::Job job;
  job.set_state(v1::JOB_STATE_DONE);
  CHECK(ExitCodeOfEval(job, {Judged(v1::VERDICT_CORRECT)}) == ExitCode::kOk);
  CHECK(ExitCodeOfEval(job, {Judged(v1::VERDICT_CORRECT), Judged(v1::VERDICT_WRONG),
                             Judged(v1::VERDICT_BUILD_FAILED)}) == ExitCode::kWrong);
  CHECK(ExitCodeOfEval(job, {Judged(v1::VERDICT_CORRECT), Judged(v1::VERDICT_UNSPECIFIED)}) ==
        ExitCode::kInfrastructure);
  CHECK(ExitCodeOfEval(job, {}) == ExitCode::kInfrastructure);
  job.set_state(v1::JOB_STATE_FAILED);
  CHECK(ExitCodeOfEval(job, {}) == ExitCode::kUsage);
  job.set_state(v1::JOB_STATE_CANCELLED);
  CHECK(ExitCodeOfEval(job, {Judged(v1::VERDICT_CORRECT)}) == ExitCode::kInterrupted);
}

TEST_CASE("A search without a correct kernel ends as the least serious of its verdicts", "[cli]") {
  v1::Job job;
  job.set_state(v1::JOB_STATE_DONE);
  CHECK(ExitCodeOfSearch(job) == ExitCode::kInfrastructure);
  (*job.mutable_counts()->mutable_verdicts())[v1::VERDICT_CRASHED] = 3;
  CHECK(ExitCodeOfSearch(job) == ExitCode::kCrashed);
  (*job.mutable_counts()->mutable_verdicts())[v1::VERDICT_WRONG] = 1;
  CHECK(ExitCodeOfSearch(job) == ExitCode::kWrong);
  job.set_best_node("j-a/k1");
  CHECK(ExitCodeOfSearch(job) == ExitCode::kOk);
  job.set_state(v1::JOB_STATE_CANCELLED);
  CHECK(ExitCodeOfSearch(job) == ExitCode::kInterrupted);
}

}  // namespace
}  // namespace grove::cli
