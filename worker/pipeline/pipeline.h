// What one worker does with the work it was given: build in the CPU sandbox ahead of the device, take the device turn,
// drive judge and candidate, and hand back exactly one result per assignment. No gRPC.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "grove/v1/services.pb.h"
#include "worker/pipeline/health.h"

namespace grove::worker {

struct WorkerPaths {
  std::string bin_dir;      // folder of this executable
  std::string libexec_dir;  // grove-judge, grove-candidate, grove-candidate-python, bwrap
  std::string include_dir;  // holds grove/kernel.h
  std::string state_dir;    // build cache, spool, worker id
};

struct PipelineOptions {
  WorkerPaths paths;
  v1::DeviceInfo device;  // kind and index as asked for; the rest is filled in by Start
  std::string python;     // interpreter that has torch; empty = found by worker/device
  std::string nvcc;       // empty = found
  std::string cxx = "g++";
  std::string ncu;         // Nsight Compute, for EvaluationOptions.profile; empty = found when it is wanted
  int build_slots = 1;     // builds at once
  std::string cache_salt;  // of the operator: builds under another are not taken from the cache
  bool allow_weak_sandbox = false;
  int64_t judge_memory_bytes = 0;             // 0 = default
  int64_t warm_judges_memory_bytes = 0;       // of the host, all of them together; 0 = half of it
  v1::Limits default_limits;                  // zero fields: worker/sandbox/limits.h
  std::optional<HealthProbes> health_probes;  // not set = the real ones
  // What a candidate holds may take long to take down. Past this its process is taken for stuck, and the device for
  // sick.
  absl::Duration slow_death = absl::Seconds(30);
};

// Snapshot for /metrics of the worker.
struct PipelineStats {
  std::string slot_state;  // "idle", "checking", "timing", "quarantined"
  int64_t builds_total = 0, build_cache_hits_total = 0, build_cache_misses_total = 0;
  std::vector<std::pair<std::string, int64_t>> verdicts_total;
  std::vector<std::pair<std::string, std::vector<double>>> stage_seconds;  // since the last snapshot
  int64_t infrastructure_failures_total = 0;
  int64_t shared_timings_total = 0;  // while processes of others held the device
  std::vector<std::pair<std::string, bool>> sandbox_layers;
  double busy_seconds_total = 0;                             // checking and timing
  std::vector<std::pair<std::string, double>> slot_seconds;  // slot_clock.h, by state
  std::string health;                                        // WorkerHeartbeat.health
  DeviceHealth::Counts health_counts;
};

class Pipeline {
 public:
  using OnProgress = std::function<void(const v1::WorkerProgress&)>;
  using OnResult = std::function<void(v1::WorkResult)>;

  // Probes sandbox and device, starts the judge's prerequisites. Errors say what is missing and what to do about it.
  // Callbacks come from the pipeline's own threads and must not block.
  static absl::StatusOr<std::unique_ptr<Pipeline>> Start(PipelineOptions options, OnProgress on_progress,
                                                         OnResult on_result);
  virtual ~Pipeline() = default;  // kills whatever runs; nothing is reported after it returns

  virtual void Submit(v1::Assignment assignment) = 0;  // never blocks; the caller keeps within Capacity()
  virtual void Cancel(const v1::Lease& lease) = 0;     // kills it; no result comes for it
  virtual std::vector<v1::Lease> Running() const = 0;
  virtual v1::DeviceInfo Device() const = 0;
  virtual std::vector<std::string> SandboxLayers() const = 0;
  virtual int Capacity() const = 0;  // 1 on the device + those building ahead
  virtual PipelineStats Stats() = 0;
};

}  // namespace grove::worker
