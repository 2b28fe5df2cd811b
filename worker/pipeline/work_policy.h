// Whose code did the work: decided from what ran (libraries in memory, kernels and operators seen), never from the
// source's text. Pure.
//
// What each format shows:
//  - Native candidates (.cu, .cpp) can only launch what is in their own object or in a library that they load. The
//    libraries are read from the kernel's own books while the candidate works, so they cannot be hidden; their own
//    object is known by the file that the worker made, not by its name; on a CPU, code mapped by hand from no file
//    ("[anonymous]") and code that was written over in memory are not accepted under a policy.
//  - Python candidates have torch in memory in any case. What they ran is what torch's profiler saw in their own
//    process during one checked call: a candidate that tampers with its own profiler can hide from it. On a CPU three
//    things are therefore seen from outside as well: whether code of their own was in memory at all, whether it is
//    still what was built, and where the CPU time of all their threads went while calls were made (work_watch.h). On a
//    GPU the profiler's word is all there is, and `how` says so.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "grove/v1/types.pb.h"
#include "worker/pipeline/work_watch.h"
#include "worker/sandbox/mappings.h"

namespace grove::worker {

// Of the time of one call: more than this in code of others is a breach. Room for the odd fill or copy.
inline constexpr double kForeignShare = 0.05;

// By CPU time, looked at from outside: a share whose lower bound (three standard errors) is beyond this is a breach.
// Every second of a thread in the interpreter and in torch's bindings excuses one of the same thread in torch: making
// tensors and finding operators takes them together. Who wants more excused pays for it with as much time.
inline constexpr double kForeignWatched = 0.1;
// Less than that seen says nothing: seconds, and looks that they are worth.
inline constexpr double kLeastWatched = 0.01, kLeastLooks = 10;

enum class CodeOrigin { kOwn, kLibrary, kTorch, kHarmless };

// What was seen of one candidate's processes.
struct SeenCode {
  sandbox::CodeSet before, after;           // mapped when it started, and while it worked
  std::set<sandbox::FileIdentity> objects;  // those that the build stage made for it
  std::optional<WatchedWork> watched;       // Python on a CPU
  std::vector<std::string> functions;       // Python on a GPU: demangled names in the machine code of its objects
};

// Whether it was watched with as many looks, and for as much CPU time, as say anything: of threads that do more than
// call, if there are any. Where the kernel does not tell, more looks do not help.
bool SeenEnough(const SeenCode& code);

// A mapped file that is no object of the candidate's, by name: a vendor's compute library (cuBLAS, cuDNN, oneMKL,
// OpenBLAS, ...), torch, or harmless (the C runtime, CUDA's runtime and compilers, the driver).
CodeOrigin OriginOfLibrary(const std::string& path);

// A kernel or operator by its name, given the functions in the machine code of the script's extensions. (Not those that
// a compiler's messages name: the script runs while it is built, and prints what it likes.) A name of torch's or of a
// library's is theirs whatever functions an extension has.
CodeOrigin OriginOfKernel(const std::string& name, bool operators, const std::vector<std::string>& functions = {});

// Whether both name one kernel: ptxas, torch and Nsight Compute write the same signature in different ways. Instances
// of one template count as one.
bool SameKernel(const std::string& one, const std::string& other);

// Fills `result->work` (policy, libraries, own share, kernels' owners) from what was seen. Returns the evidence of a
// breach of the policy in options.work, or nothing.
std::optional<std::string> JudgeWork(const v1::Candidate& candidate, const v1::EvaluationOptions& options,
                                     const SeenCode& code, v1::EvaluationResult* result);

// On a CPU, under a policy: why too little was seen for JudgeWork's silence to mean anything, or nothing.
std::optional<std::string> WorkUnseen(const v1::Candidate& candidate, const SeenCode& code);

// JudgeWork and, where the work was `watched` from outside, WorkUnseen, into the result: a CORRECT one becomes CHEATED
// with the evidence, or UNMEASURABLE where it cannot be told whose work it is. `no_functions`: why the functions of a
// script's extensions are not known; empty where they are, or are not asked for.
void MergeWork(const v1::Candidate& candidate, const v1::EvaluationOptions& options, const SeenCode& code,
               const std::string& no_functions, bool watched, v1::EvaluationResult* result);

}  // namespace grove::worker
