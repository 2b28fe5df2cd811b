// The exit codes of `grove`, a contract with scripts, and the order of "worst".
#pragma once

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "grove/v1/tree.pb.h"
#include "grove/v1/types.pb.h"

namespace grove::cli {

enum class ExitCode : int {
  kOk = 0,           // correct, or done
  kAuditMissed = 1,  // `grove audit`: a trick was not stopped, or an honest kernel was rejected
  kUsage = 2,        // wrong arguments or input
  kUnreachable = 3,  // no coordinator
  kBuildFailed = 10,
  kWrong = 11,
  kTimedOut = 12,
  kCrashed = 13,
  kCheated = 14,
  kLimitExceeded = 15,
  kUnmeasurable = 16,
  kSlower = 17,          // compare: slower than the kernel that it is compared with
  kUnclear = 18,         // compare: the interval does not say
  kProblem = 19,         // problem check: the problem has serious faults
  kInfrastructure = 20,  // no verdict, and not the candidate's fault
  kInterrupted = 130,    // Ctrl-C, or the job was cancelled
};

ExitCode ExitCodeOf(v1::Verdict verdict);  // UNSPECIFIED: kInfrastructure, for it never got one

// What a failed call means for the caller: a wrong argument, nobody there, interrupted, or something broken.
ExitCode ExitCodeOf(const absl::Status& status);

// From harmless to serious: kOk < kUnclear = kProblem < kSlower < kUnmeasurable < kBuildFailed < kWrong < kTimedOut <
// kLimitExceeded < kCrashed < kCheated < kInfrastructure < kUsage < kUnreachable < kInterrupted. A kernel that could
// not be measured may be fine; one that does not build was never run; a wrong one did run; the later ones did harm or
// tried to; the last say that the batch itself is incomplete.
ExitCode Worst(absl::Span<const ExitCode> codes);  // of none: kOk

// The end of an eval job, or of a search. An eval ends as the worst of its candidates. A search ends with kOk when it
// found a correct kernel, else with the least serious of its kernels' verdicts, and kInfrastructure when no kernel was
// judged. A job that failed: kUsage when its problem or its request is at fault, else kInfrastructure. Cancelled:
// kInterrupted.
ExitCode ExitCodeOfEval(const v1::Job& job, absl::Span<const v1::KernelNode> kernels);
// A comparison: the worst over its kernels, of a verdict that is not CORRECT (the rival's too), SLOWER and UNCLEAR.
// FASTER and SAME are kOk: no slower.
ExitCode ExitCodeOfCompare(const v1::Job& job, absl::Span<const v1::KernelNode> kernels);
ExitCode ExitCodeOfSearch(const v1::Job& job);
ExitCode ExitCodeOfFailedJob(const v1::Job& job);

}  // namespace grove::cli
