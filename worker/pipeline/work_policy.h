// Whose code did the work: decided from what ran (libraries in memory, kernels and operators seen), never from the
// source's text. Pure.
//
// What each format shows:
//  - Native candidates (.cu, .cpp) can only launch what is in their own object or in a library that they load. The
//    libraries are read from the kernel's own books while the candidate works, so they cannot be hidden; code mapped
//    by hand from no file is reported as "[anonymous]" and is not accepted under a policy on a CPU.
//  - Python candidates have torch in memory in any case. What they ran is what torch's profiler saw in their own
//  process
//    during one checked call: a candidate that tampers with its own profiler can hide from it, and `how` says so.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "grove/v1/types.pb.h"

namespace grove::worker {

// Of the time of one call: more than this in code of others is a breach. Room for the odd fill or copy.
inline constexpr double kForeignShare = 0.05;

enum class CodeOrigin { kOwn, kLibrary, kTorch, kHarmless };

// A mapped file, by name: a vendor's compute library (cuBLAS, cuDNN, oneMKL, OpenBLAS, ...), torch, or harmless (the C
// runtime, CUDA's runtime and compilers, the driver).
CodeOrigin OriginOfLibrary(const std::string& path);

// A kernel or operator by its name, given the kernels that the build stage compiled.
CodeOrigin OriginOfKernel(const std::string& name, const v1::BuildReport& build, bool operators);

// Fills `result->work` (policy, libraries, own share, kernels' owners) from what was seen. `before` and `after`: files
// with code in the candidate's processes when it started and while it worked. Returns the evidence of a breach of the
// policy in options.work, or nothing.
std::optional<std::string> JudgeWork(const v1::Candidate& candidate, const v1::EvaluationOptions& options,
                                     const std::set<std::string>& before, const std::set<std::string>& after,
                                     v1::EvaluationResult* result);

}  // namespace grove::worker
