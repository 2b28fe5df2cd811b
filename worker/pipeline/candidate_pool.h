// Candidate processes, started ahead of their work: a native one has its device context made, a Python one has torch
// imported. Each serves one evaluation.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"
#include "common/wire/channel.h"
#include "grove/v1/types.pb.h"
#include "worker/device/toolchain.h"
#include "worker/sandbox/sandbox.h"

namespace grove::worker {

struct CandidateConfig {
  std::shared_ptr<sandbox::SandboxHost> host;
  std::string native_program, python_script, python;  // paths; empty = not available
  std::vector<std::string> python_folders;
  std::vector<std::string> device_nodes;
  std::string device_argument;
  int threads = 1;
  v1::Limits default_limits;  // every field set
};

struct PreparedCandidate {
  std::unique_ptr<sandbox::SandboxedProcess> process;
  wire::Channel judge_end;
  int64_t disk_bytes = 0;
};

// Thread-safe.
class CandidatePool {
 public:
  explicit CandidatePool(CandidateConfig config) : config_(std::move(config)) {}

  // One that has said hello (its frame is left unread for the judge), with the limits' bounds set and its clock
  // started. FAILED_PRECONDITION: this kind is not installed here. INTERNAL: it did not start, with its last words.
  absl::StatusOr<PreparedCandidate> Take(bool python, const v1::Limits& limits);
  // Starts the next one if none is waiting. Cheap: returns before it is ready.
  void Restock(bool python);
  void Clear();

 private:
  absl::StatusOr<PreparedCandidate> StartOne(bool python, const v1::Limits& limits);
  const CandidateConfig config_;
  std::mutex mutex_;
  std::map<bool, PreparedCandidate> waiting_;
};

// Bounds of a candidate's sandbox from its limits.
sandbox::Bounds CandidateBounds(const v1::Limits& limits);

// "PATH=...", HOME and the like for judge and candidates.
std::vector<std::string> ProgramEnvironment(bool cuda, int threads);

}  // namespace grove::worker
