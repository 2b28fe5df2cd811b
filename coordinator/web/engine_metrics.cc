#include "coordinator/web/engine_metrics.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace grove::coordinator {
namespace {

metrics::Samples By(const std::string& label, const std::vector<std::pair<std::string, int64_t>>& counts) {
  metrics::Samples samples;
  for (const auto& [value, count] : counts) samples.push_back({{{label, value}}, static_cast<double>(count)});
  return samples;
}

// One answer, waited for with a deadline.
template <typename T>
struct Slot {
  std::mutex mu;
  std::condition_variable changed;
  std::optional<absl::StatusOr<T>> answer;

  void Set(absl::StatusOr<T> value) {
    std::lock_guard<std::mutex> lock(mu);
    answer = std::move(value);
    changed.notify_all();
  }
  std::optional<absl::StatusOr<T>> Wait(absl::Duration deadline) {
    std::unique_lock<std::mutex> lock(mu);
    changed.wait_for(lock, absl::ToChronoNanoseconds(deadline), [&] { return answer.has_value(); });
    return std::move(answer);
  }
};

}  // namespace

struct EngineMetrics::Shared {
  metrics::LabelledHistogram stages{"grove_evaluation_stage_duration_seconds",
                                    "Time that finished evaluations spent in each stage.", "stage",
                                    metrics::StageSecondsBounds()};
  std::atomic<bool> draining{false};
};

EngineMetrics::EngineMetrics(Engine& engine, absl::Duration deadline)
    : engine_(engine), deadline_(deadline), shared_(std::make_shared<Shared>()) {}
EngineMetrics::~EngineMetrics() = default;

void EngineMetrics::SetDraining() { shared_->draining.store(true); }

std::optional<absl::StatusOr<EngineStats>> EngineMetrics::Ask() {
  auto slot = std::make_shared<Slot<EngineStats>>();
  engine_.Stats([slot, shared = shared_](absl::StatusOr<EngineStats> stats) {
    if (stats.ok()) {
      // Here and not after Wait: the engine hands these out once, and a scrape that gave up must not lose them.
      for (const auto& [stage, seconds] : stats->stage_seconds) {
        for (double one : seconds) shared->stages.Observe(stage, one);
      }
    }
    slot->Set(std::move(stats));
  });
  return slot->Wait(deadline_);
}

metrics::Families EngineMetrics::Collect() {
  const std::optional<absl::StatusOr<EngineStats>> answer = Ask();
  const bool up = answer.has_value() && answer->ok();

  metrics::Families families;
  metrics::AddProcess(families, "coordinator");
  metrics::AddGauge(families, "grove_coordinator_engine_up", "1 when the engine answered this scrape in time.",
                    up ? 1 : 0);
  metrics::AddGauge(families, "grove_coordinator_draining", "1 when the coordinator gives out no more work.",
                    shared_->draining.load() ? 1 : 0);
  if (!up) return families;
  const EngineStats& stats = **answer;

  auto counter = [&](const char* name, const char* help, int64_t value) {
    metrics::AddCounter(families, name, help, static_cast<double>(value));
  };
  auto gauge = [&](const char* name, const char* help, double value) {
    metrics::AddGauge(families, name, help, value);
  };

  gauge("grove_queue_depth", "Evaluations that wait for a worker.", static_cast<double>(stats.queue_depth));
  gauge("grove_queue_oldest_age_seconds", "How long the oldest of them has waited; 0 = none waits.",
        stats.queue_oldest_age_seconds);
  gauge("grove_leases_active", "Evaluations that a worker holds.", static_cast<double>(stats.leases_active));
  counter("grove_leases_granted_total", "Leases given to workers.", stats.leases_granted_total);
  counter("grove_leases_expired_total", "Leases that ended because their worker fell silent.",
          stats.leases_expired_total);
  counter("grove_evaluation_requeues_total", "Evaluations put back into the queue without a verdict.",
          stats.requeues_total);
  counter("grove_stale_results_total", "Results refused because their lease was not the current one.",
          stats.stale_results_total);
  metrics::AddCounter(families, "grove_verdicts_total", "Verdicts by kind.", By("verdict", stats.verdicts_total));
  metrics::AddGauge(families, "grove_workers", "Workers by what their device does.",
                    By("state", stats.workers_by_state));
  metrics::AddGauge(families, "grove_jobs", "Jobs by state.", By("state", stats.jobs_by_state));
  counter("grove_model_calls_total", "Calls to language models.", stats.model_calls_total);
  counter("grove_model_errors_total", "Calls to language models without an answer.", stats.model_errors_total);
  metrics::AddCounter(families, "grove_model_tokens_total", "Tokens of language models, as the provider counts them.",
                      {{{{"kind", "prompt"}}, static_cast<double>(stats.prompt_tokens_total)},
                       {{{"kind", "completion"}}, static_cast<double>(stats.completion_tokens_total)}});
  counter("grove_build_cache_hits_total", "Builds answered from a worker's cache.", stats.build_cache_hits_total);
  counter("grove_build_cache_misses_total", "Builds that ran a compiler.", stats.build_cache_misses_total);
  counter("grove_journal_events_total", "Events written to the journal.", stats.events_total);
  gauge("grove_store_size_bytes", "Size of journal and blobs on disk.", static_cast<double>(stats.store_bytes));
  gauge("grove_store_writable", "1 when the last write to the store succeeded.", stats.store_error.empty() ? 1 : 0);
  shared_->stages.Collect(families);
  return families;
}

absl::Status EngineMetrics::Health() {
  if (shared_->draining.load()) return absl::UnavailableError("draining: no new work is taken");
  const std::optional<absl::StatusOr<EngineStats>> answer = Ask();
  if (!answer.has_value()) {
    return absl::UnavailableError(absl::StrCat("the engine did not answer within ", absl::FormatDuration(deadline_)));
  }
  if (!answer->ok()) return answer->status();
  if (const std::string& error = (*answer)->store_error; !error.empty()) {
    return absl::UnavailableError(absl::StrCat("the store cannot be written: ", error));
  }
  return absl::OkStatus();
}

}  // namespace grove::coordinator
