// The engine: jobs, searches, leases and results as one actor.
//
// One thread owns all state. Every public method may be called from any thread, never blocks, and answers by callback
// on the engine's thread after whatever it changed is durable (one SQLite transaction per turn of the loop, so that
// many changes share one fsync). Model calls run on executors and come back as messages. Blobs are compressed where
// they are committed: zlib's fastest level takes 0.04 ms for a kernel of 8 KB and 4 ms for 1 MiB, beside an fsync of
// milliseconds. No gRPC, no HTTP, no wall clock but the Clock it is given.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grove/v1/services.pb.h"
#include "grove/v1/tree.pb.h"

namespace grove::coordinator {

// The way to one connected worker. Implemented by the transport. Send never blocks: it queues, and a worker that does
// not drain its bounded queue is closed.
class WorkerLink {
 public:
  virtual ~WorkerLink() = default;
  virtual void Send(v1::CoordinatorMessage message) = 0;
  virtual void Close(absl::Status reason) = 0;
};

struct EventBatch {
  std::vector<v1::Event> events;  // in order; progress events have seq 0
  uint64_t next_after_seq = 0;
  uint64_t next_progress = 0;  // cursor for progress events
  bool ended = false;          // the job has ended and there is nothing after these
};

template <typename T>
using Reply = std::function<void(absl::StatusOr<T>)>;

// What /metrics shows, a snapshot of real state (coordinator/web turns it into Prometheus families).
struct EngineStats {
  int64_t queue_depth = 0;
  double queue_oldest_age_seconds = 0;
  int64_t leases_active = 0;
  int64_t leases_expired_total = 0;
  int64_t leases_granted_total = 0;
  int64_t stale_results_total = 0;
  int64_t requeues_total = 0;
  std::vector<std::pair<std::string, int64_t>> verdicts_total;    // verdict name in lower case
  std::vector<std::pair<std::string, int64_t>> workers_by_state;  // idle, checking, timing, quarantined, disconnected
  std::vector<std::pair<std::string, int64_t>> jobs_by_state;
  int64_t model_calls_total = 0, model_errors_total = 0, prompt_tokens_total = 0, completion_tokens_total = 0;
  int64_t build_cache_hits_total = 0, build_cache_misses_total = 0;
  std::vector<std::pair<std::string, std::vector<double>>> stage_seconds;  // since the last snapshot, by stage
  int64_t events_total = 0;
  int64_t store_bytes = 0;
  std::string store_error;  // why the store cannot be written now; empty = it can
};

// How the reason of a job that stands still for EngineOptions::hold_before begins.
inline constexpr char kInterrupted[] = "interrupted";

class Engine {
 public:
  virtual ~Engine() = default;

  virtual void SubmitJob(v1::SubmitJobRequest request, Reply<v1::SubmitJobResponse> reply) = 0;
  virtual void GetJob(std::string id, Reply<v1::Job> reply) = 0;
  virtual void ListJobs(v1::ListJobsRequest request, Reply<v1::ListJobsResponse> reply) = 0;
  virtual void CancelJob(v1::CancelJobRequest request, Reply<v1::Job> reply) = 0;
  virtual void ResumeJob(v1::ResumeJobRequest request, Reply<v1::Job> reply) = 0;
  // Up to `max` events after the cursor; answers at once when there are any or the job has ended, else when the first
  // one comes. progress_cursor < 0 = no progress events. Returns a ticket for CancelWait.
  virtual uint64_t NextEvents(std::string job, uint64_t after_seq, int64_t progress_cursor, int max,
                              Reply<EventBatch> reply) = 0;
  virtual void CancelWait(uint64_t ticket) = 0;  // the reply comes with CANCELLED if it was still waiting
  // Nodes of the tree in creation order from `offset`, at most `max`; an empty answer is the end.
  virtual void GetTree(std::string job, int64_t offset, int max, Reply<std::vector<v1::TreeNode>> reply) = 0;
  virtual void GetNode(std::string id, Reply<v1::TreeNode> reply) = 0;
  virtual void GetArtifact(std::string sha256, Reply<std::string> reply) = 0;

  virtual void ListBank(v1::ListBankRequest request, Reply<v1::ListBankResponse> reply) = 0;
  virtual void GetBankEntry(std::string id, Reply<v1::BankEntry> reply) = 0;
  virtual void AddBankEntry(v1::AddBankEntryRequest request, Reply<v1::BankEntry> reply) = 0;
  virtual void RemoveBankEntry(std::string id, Reply<v1::RemoveBankEntryResponse> reply) = 0;

  // Farm. A second session of the same worker_id closes the first. The session ends by WorkerClosed.
  virtual uint64_t WorkerConnected(v1::WorkerHello hello, std::shared_ptr<WorkerLink> link) = 0;
  virtual void WorkerSaid(uint64_t session, v1::WorkerMessage message) = 0;
  virtual void WorkerClosed(uint64_t session) = 0;
  virtual void ListWorkers(Reply<v1::ListWorkersResponse> reply) = 0;
  virtual void GetFarmInfo(Reply<v1::FarmInfo> reply) = 0;

  virtual void Stats(Reply<EngineStats> reply) = 0;

  // Gives out no more work and answers SubmitJob with UNAVAILABLE; running leases may still finish.
  virtual void Drain() = 0;
  // Stops the loop after the turn at hand; waiting replies get CANCELLED. Idempotent.
  virtual void Stop() = 0;
};

struct EngineOptions {
  std::string data_dir;  // journal.db, blobs/, lock
  std::string version;
  absl::Duration heartbeat = absl::Seconds(2);
  absl::Duration lease = absl::Seconds(15);  // 7 heartbeats: survives a paused VM and a slow fsync, loses 15 s at most
  int max_attempts = 5;                      // leases of one evaluation before it is UNMEASURABLE with the reasons
  int generator_threads = 8;                 // model calls in flight
  std::string cache_salt;                    // of the operator, any text: results under another are not used again
  // Jobs of the journal that have not ended and were last put to work (submitted, resumed) before this stand still, as
  // PAUSED with kInterrupted, until ResumeJob or the same submission comes: for a coordinator that is there for one
  // command, whose user did not ask for what earlier ones left. InfiniteFuture: all of them.
  absl::Time hold_before = absl::InfinitePast();
};

}  // namespace grove::coordinator
