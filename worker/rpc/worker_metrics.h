// /metrics and /healthz of the worker, from the pipeline's and the farm client's own state.
#pragma once

#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "common/metrics/families.h"
#include "worker/pipeline/pipeline.h"
#include "worker/rpc/farm_client.h"

namespace grove::worker {

// The one reader of Pipeline::Stats, which hands out its stage durations once. Thread-safe; both must outlive it.
class WorkerMetrics {
 public:
  WorkerMetrics(Pipeline& pipeline, const FarmClient& client);

  metrics::Families Collect();
  // OK when a coordinator has welcomed this worker and its device is not quarantined.
  absl::Status Health();
  std::string SlotState();
  std::string DeviceHealth();  // WorkerHeartbeat.health

 private:
  PipelineStats Read();

  Pipeline& pipeline_;
  const FarmClient& client_;
  metrics::LabelledHistogram stages_;
};

}  // namespace grove::worker
