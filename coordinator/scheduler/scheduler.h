// Which worker runs what, and until when: the queue of work, the workers and their leases.
//
// Pure state: time comes as an argument (monotonic), nothing is sent and nothing is stored. Whoever drives it makes a
// grant durable before the worker hears of it, so that a token (the attempt number) is never given out twice.
//
// Tokens. Each grant of a piece of work takes the next attempt number. A token is good while it is the newest of its
// work and the work has not ended; so a worker that was silent for too long, but is back before anybody else got the
// work, keeps it ("taken up again"), and any older token is stale for ever.
//
// Fairness. Round robin over jobs, first come first served inside a job. Work that what comes after it hangs on, and
// work whose worker was lost, goes to the front; work that a worker could not run goes to the back, because it may be
// the work that breaks the machine.
//
// Failures. Work whose lease is lost (expired, worker came back without it, infrastructure failure) is queued again,
// away from the workers that lost it while another one fits, after a pause that doubles; a worker that reports
// infrastructure failures one after the other gets its next work after a pause that doubles too, so that one broken
// machine does not use up the attempts of a whole queue. After max_attempts the work is given up.
//
// Owned by one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "grove/v1/services.pb.h"

namespace grove::scheduler {

struct Options {
  absl::Duration lease = absl::Seconds(15);
  int max_attempts = 5;
  // Lost work is ready again at once the first time, and waits 2^(n-2) times this after the n-th loss, at most
  // max_pause. A worker waits 2^(n-1) times this after n infrastructure failures without a verdict between them. 0.5 s:
  // longer than a driver needs to come back from a sticky error by process restart.
  absl::Duration pause = absl::Milliseconds(500);
  absl::Duration max_pause = absl::Seconds(30);
};

// A piece of work as it enters: attempts and reasons are those of its past.
struct Work {
  std::string id;  // kernel node id or "<job>/describe"
  std::string job;
  v1::DeviceKind device = v1::DEVICE_KIND_UNSPECIFIED;  // unspecified = any
  std::string worker;                                   // id or name of the only one that may do it; empty = any
  int attempts = 0;                                     // tokens given out so far
  int attempts_base = 0;  // of these, before the job was resumed: they do not count against max_attempts
  std::string last_worker;
  std::vector<std::string> reasons;  // why earlier leases were lost
  bool front = false;                // before what the job has waiting already
};

struct Grant {
  std::string work;
  std::string job;
  int attempt = 0;
  std::string worker;
  uint64_t session = 0;
  absl::Duration waited;  // in the queue
};

// A lease that ended without a result.
struct Loss {
  std::string work;
  std::string job;
  int attempt = 0;
  std::string worker;
  std::string reason;
  bool expired = false;
  bool given_up = false;             // no attempts left: the work is out of the scheduler
  std::vector<std::string> reasons;  // all of them, only when given up
};

struct HelloOutcome {
  uint64_t replaced_session = 0;   // of the same worker, to be closed; 0 = none
  std::vector<v1::Lease> revoked;  // of hello.running: not this worker's any more
  std::vector<Grant> taken_up;     // queued again meanwhile, and now this worker's once more under the same token
  std::vector<Loss> lost;          // this worker's leases that it did not restate
};

struct HeartbeatOutcome {
  std::vector<v1::Lease> revoked;
  std::vector<Grant> taken_up;
};

struct Held {
  v1::Lease lease;
  uint64_t session = 0;  // 0 = the worker is not connected
};

struct WorkerView {
  std::string id;
  uint64_t session = 0;   // 0 = not connected
  v1::WorkerHello hello;  // without leases
  std::string slot_state;
  std::string health;
  bool draining = false;
  absl::Duration last_heard;
  int64_t finished = 0;
  std::vector<v1::Lease> running;
};

class Scheduler {
 public:
  explicit Scheduler(Options options) : options_(options) {}

  // Queues work. False when it is here already.
  bool Add(Work work, absl::Duration now);
  // Work that was leased when the coordinator stopped: its lease is honoured for one lease time from now.
  bool AddLeased(Work work, const std::string& worker, absl::Duration now);

  HelloOutcome Connect(uint64_t session, const v1::WorkerHello& hello, absl::Duration now);
  // The worker's leases go on until they expire.
  void Disconnect(uint64_t session, absl::Duration now);
  HeartbeatOutcome Heartbeat(uint64_t session, const v1::WorkerHeartbeat& heartbeat, absl::Duration now);
  // The worker of a session; null when the session is not the worker's current one.
  const std::string* WorkerOf(uint64_t session) const;

  // Gives free slots work.
  std::vector<Grant> Match(absl::Duration now);
  // Takes back leases that have run out.
  std::vector<Loss> Expire(absl::Duration now);

  // Whether this is the newest token of work that has not ended, and this worker's.
  bool Holds(const std::string& worker, const v1::Lease& lease) const;
  // A verdict came: the work leaves the scheduler.
  void Finish(const std::string& work, const std::string& worker);
  // No verdict came. `lease` must hold. The worker waits before it gets more, ever longer until one of its works ends
  // in a verdict; not for the one work there that fails, with these words as before.
  Loss Fail(const std::string& worker, const v1::Lease& lease, const std::string& reason, absl::Duration now);
  // Everything of this job leaves; the leases held are for the caller to revoke.
  std::vector<Held> RemoveJob(const std::string& job);
  // All leases run for a whole lease time from now: after a time in which no heartbeat could be honoured.
  void RenewLeases(absl::Duration now);

  // When, after now, Expire or Match may have something to do without a message; InfiniteDuration if never.
  absl::Duration NextDeadline(absl::Duration now) const;

  bool Has(const std::string& work) const { return works_.contains(work); }
  // Slots of connected workers that take work of this device kind, and are the one of this id or name where given.
  int FittingCapacity(v1::DeviceKind device, absl::Duration now, const std::string& worker = "") const;
  int QueuedOf(const std::string& job) const;
  int LeasedOf(const std::string& job) const;
  int64_t queued() const { return queued_; }
  int64_t leased() const { return static_cast<int64_t>(leases_.size()); }
  absl::Duration OldestQueuedAge(absl::Duration now) const;
  // A worker's device was calibrated: what it says of itself from now on.
  void SetCalibration(const std::string& worker, const v1::Calibration& calibration);
  std::vector<WorkerView> Workers() const;

 private:
  struct Entry {
    Work work;
    bool leased = false;
    std::string worker;      // leased: to whom
    absl::Duration expires;  // leased
    absl::Duration queued_at;
    absl::Duration not_before;       // queued
    std::vector<std::string> avoid;  // workers that lost it
  };
  struct Worker {
    uint64_t session = 0;
    v1::WorkerHello hello;
    std::string slot_state = "idle";
    std::string health;
    bool draining = false;
    absl::Duration last_heard;
    absl::Duration not_before;
    int failures = 0;  // infrastructure failures since the last verdict
    int leases = 0;
    int64_t finished = 0;
  };
  struct JobQueue {
    std::deque<std::string> ready;
    int queued = 0;  // ready and waiting for their pause to end
    int leased = 0;
  };

  void Enqueue(Entry& entry, absl::Duration now);
  void TakeFromQueue(Entry& entry);
  void Bind(Entry& entry, const std::string& worker, absl::Duration now);
  void Unbind(Entry& entry);
  Loss Lose(Entry& entry, const std::string& reason, bool expired, bool front, absl::Duration now);
  void Erase(const std::string& work);
  void WakePaused(absl::Duration now);
  bool Usable(const Worker& worker, absl::Duration now) const;
  static bool Fits(v1::DeviceKind device, const std::string& wanted, const std::string& id, const Worker& worker);
  Worker* Pick(const Entry& entry, absl::Duration now, std::string* id);
  std::optional<Grant> MatchJob(const std::string& job, JobQueue& queue, absl::Duration now);
  absl::Duration Pause(int times) const;
  void ForgetGoneWorkers();

  const Options options_;
  absl::flat_hash_map<std::string, Entry> works_;
  std::map<std::string, JobQueue> jobs_;  // ordered, so that the round robin has a place to go on from
  std::string cursor_;                    // the job that was served last
  std::map<std::string, Worker> workers_;
  absl::flat_hash_map<uint64_t, std::string> sessions_;
  std::map<std::string, absl::Duration> leases_;  // work -> expiry
  std::multimap<absl::Duration, std::string> paused_;
  int64_t queued_ = 0;
};

// Whether a worker with this device can take work for that kind.
bool DeviceFits(v1::DeviceKind wanted, v1::DeviceKind have);

}  // namespace grove::scheduler
