// Results for people: what an evaluation found, and everything about one node. Pure.
#pragma once

#include <map>
#include <string>

#include "absl/types/span.h"
#include "clients/cli/text.h"
#include "grove/v1/services.pb.h"
#include "grove/v1/tree.pb.h"

namespace grove::cli {

// `grove eval`: verdict, reason, speedup with interval and baseline, medians, samples, device, worst mismatch, compiler
// text (its first lines) and how to see the rest. `kernel.candidate().name()` heads it.
std::string RenderEvaluation(const v1::KernelNode& kernel, const Style& style);

// `grove show`: the whole node: source, build log, verdict, samples, lineage. `lineage` is from the node's parent up to
// the reference, nearest first.
std::string RenderKernelNode(const v1::KernelNode& kernel, absl::Span<const v1::TreeNode> lineage, const Style& style);
std::string RenderIdeaNode(const v1::IdeaNode& idea, absl::Span<const v1::TreeNode> lineage,
                           absl::Span<const v1::KernelNode> kernels, const Style& style);

// `grove jobs`, `grove job`, `grove workers`, `grove bank list|show`.
std::string RenderJobs(absl::Span<const v1::Job> jobs, int64_t now_unix_nanos);
std::string RenderJob(const v1::Job& job, int64_t now_unix_nanos, const Style& style);
std::string RenderWorkers(absl::Span<const v1::WorkerStatus> workers);
std::string RenderBank(absl::Span<const v1::BankEntry> entries, int64_t now_unix_nanos);
std::string RenderBankEntry(const v1::BankEntry& entry, const Style& style);

// Whose work it was, by the job's policy: own share, libraries loaded, the longest kernels or operators seen and how
// they were seen; `all` of them, and what was loaded where the job has no policy. Empty when there is nothing to tell.
std::string RenderWork(const v1::WorkReport& work, bool all);

// "CORRECT 3.42x [3.31, 3.55]", "WRONG".
std::string KernelVerdictLine(const v1::KernelNode& kernel);

// "3 correct, 1 build failed" in the order of the enum.
std::string RenderVerdictCounts(const std::map<v1::Verdict, int>& counts);

// The last lines of a search: the best kernel with its speedup, or that there is none.
std::string RenderSearchEnd(const v1::Job& job, const v1::KernelNode* best, const Style& style);

}  // namespace grove::cli
