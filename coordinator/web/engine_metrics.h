// /metrics and /healthz of the coordinator, from the engine's own state.
#pragma once

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/metrics/families.h"
#include "coordinator/engine/engine.h"

namespace grove::coordinator {

// Thread-safe. The engine must outlive it and answer every request (Engine::Stop does), but may answer late: a scrape
// waits `deadline` at most and then shows the process alone with grove_coordinator_engine_up 0.
class EngineMetrics {
 public:
  EngineMetrics(Engine& engine, absl::Duration deadline);
  ~EngineMetrics();

  metrics::Families Collect();
  // OK when serving and the engine answers within the deadline and can write its store.
  absl::Status Health();
  // What Health says from now on; nothing = serving.
  void SetDraining();

 private:
  std::optional<absl::StatusOr<EngineStats>> Ask();  // nothing = not in time

  struct Shared;  // outlives a late answer
  Engine& engine_;
  const absl::Duration deadline_;
  const std::shared_ptr<Shared> shared_;
};

}  // namespace grove::coordinator
