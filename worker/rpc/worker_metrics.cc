#include "worker/rpc/worker_metrics.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/measure/comparison.h"

namespace grove::worker {

WorkerMetrics::WorkerMetrics(Pipeline& pipeline, const FarmClient& client)
    : pipeline_(pipeline),
      client_(client),
      stages_("grove_worker_stage_duration_seconds", "Time that evaluations on this worker spent in each stage.",
              "stage", metrics::StageSecondsBounds()) {}

PipelineStats WorkerMetrics::Read() {
  PipelineStats stats = pipeline_.Stats();
  for (const auto& [stage, seconds] : stats.stage_seconds) {
    for (double one : seconds) stages_.Observe(stage, one);
  }
  return stats;
}

std::string WorkerMetrics::SlotState() { return Read().slot_state; }

std::string WorkerMetrics::DeviceHealth() { return Read().health; }

metrics::Families WorkerMetrics::Collect() {
  const PipelineStats stats = Read();
  const FarmClientStats farm = client_.Stats();
  metrics::Families families;
  metrics::AddProcess(families, "worker");
  auto counter = [&](const char* name, const char* help, int64_t value) {
    metrics::AddCounter(families, name, help, static_cast<double>(value));
  };
  auto gauge = [&](const char* name, const char* help, double value) {
    metrics::AddGauge(families, name, help, value);
  };

  metrics::Samples states;
  bool known = false;
  for (const char* state : {"idle", "checking", "timing", "quarantined"}) {
    known = known || stats.slot_state == state;
    states.push_back({{{"state", state}}, stats.slot_state == state ? 1.0 : 0.0});
  }
  if (!known) states.push_back({{{"state", "other"}}, 1});
  metrics::AddGauge(families, "grove_worker_slot", "1 for what the device slot does now, 0 for the rest.", states);
  metrics::AddCounter(families, "grove_worker_slot_busy_seconds_total",
                      "Time that the device slot was checking or timing.", stats.busy_seconds_total);
  metrics::Samples slot_seconds;
  for (const auto& [state, seconds] : stats.slot_seconds) slot_seconds.push_back({{{"state", state}}, seconds});
  metrics::AddCounter(families, "grove_worker_slot_seconds_total",
                      "Time of the device slot by what it did (checking, timing) or why it did nothing.", slot_seconds);
  gauge("grove_worker_leases", "Leases that this worker has.", static_cast<double>(farm.running));
  counter("grove_worker_builds_total", "Builds asked for, cached ones included.", stats.builds_total);
  counter("grove_worker_build_cache_hits_total", "Builds answered from the cache.", stats.build_cache_hits_total);
  counter("grove_worker_build_cache_misses_total", "Builds that ran a compiler.", stats.build_cache_misses_total);
  metrics::Samples verdicts;
  for (const auto& [verdict, count] : stats.verdicts_total)
    // As the coordinator names them: build_failed, not VERDICT_BUILD_FAILED.
    verdicts.push_back(
        {{{"verdict", absl::AsciiStrToLower(absl::StripPrefix(verdict, "VERDICT_"))}}, static_cast<double>(count)});
  metrics::AddCounter(families, "grove_worker_verdicts_total", "Verdicts by kind.", verdicts);
  counter("grove_worker_infrastructure_failures_total", "Work that ended without a verdict.",
          stats.infrastructure_failures_total);
  counter("grove_worker_shared_timings_total", "Timings while processes of others held the GPU.",
          stats.shared_timings_total);
  counter("grove_worker_device_faults_total", "Faults after which the device had to prove itself.",
          stats.health_counts.faults);
  counter("grove_worker_canaries_total", "Runs of the program whose answer is known.", stats.health_counts.canaries);
  counter("grove_worker_canary_failures_total", "Of these, those that failed.", stats.health_counts.canary_failures);
  counter("grove_worker_quarantines_total", "Times that the device was taken out of service.",
          stats.health_counts.quarantines);
  metrics::Samples xids;
  for (const auto& [xid, count] : stats.health_counts.xids) {
    xids.push_back({{{"xid", absl::StrCat(xid)}}, static_cast<double>(count)});
  }
  metrics::AddCounter(families, "grove_worker_xids_total", "Errors that the GPU's driver reported, by number.", xids);
  gauge("grove_worker_xids_unseen", "1 while the GPU's driver does not report its errors to this worker.",
        stats.health_counts.deaf ? 1 : 0);
  metrics::Samples layers;
  for (const auto& [layer, active] : stats.sandbox_layers) layers.push_back({{{"layer", layer}}, active ? 1.0 : 0.0});
  metrics::AddGauge(families, "grove_worker_sandbox_layer_active", "1 when the layer of the sandbox is active.",
                    layers);

  const v1::DeviceInfo device = pipeline_.Device();
  const v1::Calibration& calibration = device.calibration();
  gauge("grove_device_resolution_ratio",
        "Relative difference of two times below which kernels count as the same; a default where never calibrated.",
        measure::ResolutionOf(device));
  metrics::Samples resolutions;
  for (const v1::CalibrationKernel& kernel : calibration.kernels()) {
    if (kernel.resolution() > 0) resolutions.push_back({{{"kernel", kernel.name()}}, kernel.resolution()});
  }
  if (!resolutions.empty()) {
    metrics::AddGauge(
        families, "grove_device_kernel_resolution_ratio",
        "The same for calls and runs that are about as long as those of this calibrated kernel, or longer.",
        resolutions);
  }
  gauge("grove_device_calibrated_timestamp_seconds", "When the device was calibrated, in Unix time; 0 = never.",
        static_cast<double>(calibration.time_unix_nanos()) * 1e-9);
  if (calibration.runs() > 0) {
    gauge("grove_device_same_ratio", "Share of a kernel's comparisons with itself that came out as the same.",
          calibration.same_share());
    gauge("grove_device_interval_coverage_ratio", "Share of 95 % intervals that held the truth.",
          calibration.coverage());
    gauge("grove_device_memory_bandwidth_bytes_per_second", "Measured bandwidth of the device's memory.",
          calibration.bandwidth_bytes_per_second());
    metrics::Samples rates;
    for (const v1::Rate& rate : calibration.rates()) {
      rates.push_back({{{"precision", rate.precision()}}, rate.operations_per_second()});
    }
    metrics::AddGauge(families, "grove_device_matrix_operations_per_second",
                      "Measured rate of matrix products, multiply and add counted as two.", rates);
  }
  if (calibration.detection_runs() > 0) {
    gauge("grove_device_slowdown_detected_ratio", "Share of planted slowdowns of 2 % that were found.",
          calibration.detection_share());
  }

  gauge("grove_worker_connected", "1 while a coordinator has this worker's session.", farm.connected ? 1 : 0);
  counter("grove_worker_sessions_total", "Sessions with the coordinator.", farm.sessions_total);
  counter("grove_worker_connect_failures_total", "Attempts to reach the coordinator that failed.",
          farm.connect_failures_total);
  counter("grove_worker_assignments_total", "Leases received.", farm.assignments_total);
  counter("grove_worker_revocations_total", "Leases taken back.", farm.revocations_total);
  counter("grove_worker_results_sent_total", "Results sent, repeats included.", farm.results_sent_total);
  counter("grove_worker_results_acknowledged_total", "Results acknowledged by the coordinator.",
          farm.results_acknowledged_total);
  counter("grove_worker_results_stale_total",
          "Results acknowledged as stale: the lease was not this worker's any more.", farm.results_stale_total);
  counter("grove_worker_results_lost_total", "Results that could neither be kept nor delivered.",
          farm.results_lost_total);
  gauge("grove_worker_spool_results", "Results not acknowledged yet.", static_cast<double>(farm.spool_files));
  gauge("grove_worker_spool_size_bytes", "Size of the results not acknowledged yet.",
        static_cast<double>(farm.spool_bytes));
  stages_.Collect(families);
  return families;
}

absl::Status WorkerMetrics::Health() {
  const FarmClientStats farm = client_.Stats();
  if (!farm.connected) {
    return absl::UnavailableError(absl::StrCat("no session with the coordinator",
                                               farm.last_error.empty() ? "" : absl::StrCat(": ", farm.last_error)));
  }
  if (Read().slot_state == "quarantined") {
    return absl::UnavailableError(absl::StrCat("the device is ", Read().health));
  }
  return absl::OkStatus();
}

}  // namespace grove::worker
