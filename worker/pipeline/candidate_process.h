// One candidate process: how it is started, and how it is had ready (process_pool.h). Each serves one evaluation.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "grove/v1/types.pb.h"
#include "worker/device/toolchain.h"
#include "worker/pipeline/process_pool.h"
#include "worker/sandbox/sandbox.h"

namespace grove::worker {

struct CandidateConfig {
  std::shared_ptr<sandbox::SandboxHost> host;
  std::string native_program, python_script, python;  // paths; empty = not available
  std::string shareable_memory;                       // library for scripts on a GPU; empty = not available
  std::vector<std::string> python_folders;
  device::Tools tools;
  std::vector<std::string> device_nodes;
  std::string device_argument;
  int threads = 1;
  v1::Limits default_limits;  // every field set
  // Waiting processes of each kind. On a GPU each holds a context (some 0.5 GB of its memory), a Python one as much
  // host memory besides.
  int native_ahead = 1, python_ahead = 1;
};

// Starts one, which will say hello when it is ready. Its clock does not run yet (SetBounds starts it).
// `adapt` may change what is started and where; empty = as it is. FAILED_PRECONDITION: this kind is not installed here.
absl::StatusOr<StartedProcess> StartCandidate(const CandidateConfig& config, bool python, const v1::Limits& limits,
                                              const std::function<void(sandbox::SandboxSpec*)>& adapt);

// One that has said hello (its frame is left unread for the judge), with the limits' bounds set and its clock started:
// from the pool, or started now. FAILED_PRECONDITION: this kind is not installed here. INTERNAL: it did not start, with
// its last words.
absl::StatusOr<StartedProcess> TakeCandidate(ProcessPool& pool, const CandidateConfig& config, bool python,
                                             const v1::Limits& limits);

// Bounds of a candidate's sandbox from its limits.
sandbox::Bounds CandidateBounds(const v1::Limits& limits);

inline Ahead CandidateKind(bool python) { return python ? Ahead::kPythonCandidate : Ahead::kNativeCandidate; }

}  // namespace grove::worker
