// Candidate processes, started ahead of their work: a native one has its device context made, a Python one has torch
// imported. Each serves one evaluation.
//
// Theory of operation. A thread of its own keeps `ahead` of each kind that was ever asked for, so that no evaluation
// waits for a process to start. While the pool is told to be quiet (something is being timed) it starts none, and those
// that are still on their way to being ready are held.
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

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
  device::Tools tools;
  std::vector<std::string> device_nodes;
  std::string device_argument;
  int threads = 1;
  v1::Limits default_limits;  // every field set
  // Waiting processes of each kind. On a GPU each holds a context (some 0.5 GB of its memory), a Python one as much
  // host memory besides.
  int native_ahead = 1, python_ahead = 1;
};

struct PreparedCandidate {
  std::unique_ptr<sandbox::SandboxedProcess> process;
  wire::Channel judge_end;
  int64_t disk_bytes = 0;
};

// Starts one, which will say hello when it is ready. Its clock does not run yet (SetBounds starts it).
// `adapt` may change what is started and where; empty = as it is. FAILED_PRECONDITION: this kind is not installed here.
absl::StatusOr<PreparedCandidate> StartCandidate(const CandidateConfig& config, bool python, const v1::Limits& limits,
                                                 const std::function<void(sandbox::SandboxSpec*)>& adapt);

// Thread-safe.
class CandidatePool {
 public:
  explicit CandidatePool(CandidateConfig config);
  ~CandidatePool();

  // One that has said hello (its frame is left unread for the judge), with the limits' bounds set and its clock
  // started. FAILED_PRECONDITION: this kind is not installed here. INTERNAL: it did not start, with its last words.
  absl::StatusOr<PreparedCandidate> Take(bool python, const v1::Limits& limits);
  // From now on so many of this kind are kept ready. Returns at once.
  void Restock(bool python);
  // Nothing starts, and nothing that starts goes on, until it is told otherwise. Returns when that holds, within a
  // second in any case.
  void Quiet(bool quiet);
  // Ends those that wait. None is started until the next Restock.
  void Clear();
  // Waiting now, ready or not.
  int Waiting(bool python);

 private:
  struct Waiting_ {
    PreparedCandidate candidate;
    bool held = false;
  };
  void Stock();
  int Ahead(bool python) const { return python ? config_.python_ahead : config_.native_ahead; }

  const CandidateConfig config_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<bool, std::list<Waiting_>> waiting_;  // oldest first
  std::map<bool, bool> wanted_;
  bool starting_ = false;  // the thread is between deciding to start one and adding it
  bool quiet_ = false, stopping_ = false;
  int generation_ = 0;  // of Clear: what was being started meanwhile is not kept
  std::thread thread_;
};

// Bounds of a candidate's sandbox from its limits.
sandbox::Bounds CandidateBounds(const v1::Limits& limits);

// "PATH=...", HOME and the like for judge and candidates. CC, CXX and CUDA_HOME name the tools that were found, which
// the sandboxes of the judge and of Python candidates show; what these variables say outside may lie anywhere.
std::vector<std::string> ProgramEnvironment(bool cuda, int threads, const device::Tools& tools);

}  // namespace grove::worker
