// What the pipeline counts for /metrics, and where its device slot's time goes. Thread-safe.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "grove/v1/types.pb.h"
#include "worker/pipeline/pipeline.h"
#include "worker/pipeline/slot_clock.h"

namespace grove::worker {

class Meters {
 public:
  void Verdict(v1::Verdict verdict);
  void InfrastructureFailure();
  void Build(bool cached);
  void SharedTiming();  // others held the device
  void Stage(const std::string& stage, double seconds);

  // What the coordinator is told: "idle", "checking", "timing", "quarantined".
  void ShowSlot(const std::string& state);
  // What the slot does (slot_clock.h): finer.
  void EnterSlot(const std::string& state);
  // Whether the slot does anything, and whether there is any work: why one that does nothing does nothing.
  void SetIdle(bool idle);
  void SetWork(bool any);

  void SetLayers(std::vector<std::pair<std::string, bool>> layers);
  // All but health; the stages' seconds since the last time.
  PipelineStats Take();

 private:
  void ShowWhyIdle();  // with the lock

  std::mutex mutex_;
  PipelineStats stats_;
  std::map<std::string, int64_t> verdicts_;
  std::map<std::string, std::vector<double>> stage_seconds_;
  SlotClock slot_clock_{SteadyNow()};
  bool idle_ = true, work_ = false;
};

}  // namespace grove::worker
