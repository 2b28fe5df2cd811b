// The worker's half of Farm.Connect: keeps a session with the coordinator, hands assignments to the pipeline, and sees
// every result home.
//
// Theory of operation. One thread owns all state (assigned leases, spool, session); gRPC's reactions and the pipeline's
// callbacks only put what happened into a mailbox and wake it. The mailbox is bounded by construction: one message read
// at a time, one write in flight, one result per lease, and the newest progress of each lease.
//
//   hello (running, unacknowledged) → welcome → results from the spool, heartbeats, progress ⇄ assignments, acks,
//   revocations
//
// A result is written to the spool before it is sent and removed when acknowledged; a new session sends all that is
// left. So a result reaches the coordinator at least once, and its fencing token makes that exactly once. A lost stream
// stops nothing: what runs goes on, and the next hello names it. Reconnecting waits by worker/rpc/backoff.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/rpc/channel.h"
#include "grove/v1/services.pb.h"
#include "worker/pipeline/pipeline.h"
#include "worker/rpc/backoff.h"
#include "worker/rpc/spool.h"

namespace grove::worker {

struct FarmClientOptions {
  rpc::ChannelOptions channel;
  std::string worker_id;
  std::string name;
  std::string version;
  std::vector<std::string> tags;
  std::string spool_dir;
  Spool::Options spool;
  Backoff::Options backoff;
  uint64_t seed = 0;  // of the jitter
  // For heartbeats; must not block. Not set = Pipeline::Stats(), which a page of metrics would have to share.
  std::function<std::string()> slot_state;
  std::function<std::string()> health;  // WorkerHeartbeat.health; likewise
  // The coordinator refused this worker for good (another protocol version): called once, on the client's thread, which
  // then stops connecting.
  std::function<void(const absl::Status&)> on_refused;
};

struct FarmClientStats {
  bool connected = false;              // welcomed by the coordinator
  int64_t sessions_total = 0;          // sessions that got as far as the welcome
  int64_t connect_failures_total = 0;  // attempts that did not
  int64_t results_sent_total = 0;      // resends included
  int64_t results_acknowledged_total = 0;
  int64_t results_stale_total = 0;  // of those, refused for an old token
  int64_t results_lost_total = 0;   // could not be kept on disk nor delivered
  int64_t assignments_total = 0;
  int64_t revocations_total = 0;
  int64_t spool_files = 0;
  int64_t spool_bytes = 0;
  int64_t running = 0;     // leases that the pipeline has
  std::string last_error;  // why there is no session; empty while connected
};

// Thread-safe.
class FarmClient {
 public:
  // Opens spool and channel. Errors: the address, the TLS files, the spool folder.
  static absl::StatusOr<std::unique_ptr<FarmClient>> Create(FarmClientOptions options);
  virtual ~FarmClient() = default;

  // Connects, and reconnects until Stop. `pipeline` must outlive Stop. Call once.
  virtual void Start(Pipeline& pipeline) = 0;

  // For the pipeline's callbacks, which may come before Start and after Stop: they never block.
  virtual void OnProgress(const v1::WorkerProgress& progress) = 0;
  virtual void OnResult(v1::WorkResult result) = 0;

  // Tells the coordinator that no more work is wanted. `on_idle` is called once, on the client's thread, when nothing
  // runs and nothing is unacknowledged any more.
  virtual void Drain(std::function<void()> on_idle) = 0;

  // Ends the session and the thread; results not acknowledged stay in the spool. Idempotent.
  virtual void Stop() = 0;

  virtual FarmClientStats Stats() const = 0;
};

}  // namespace grove::worker
