#include "coordinator/scheduler/scheduler.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace grove::scheduler {
namespace {

constexpr size_t kMaxReasons = 8;        // kept per piece of work: more than the attempts there are by default
constexpr size_t kLookahead = 64;        // places into one job's queue that are tried for a worker that fits
constexpr size_t kMaxGoneWorkers = 256;  // disconnected workers that are still listed
constexpr int kMaxCapacity = 1024;
constexpr size_t kMaxHealth = 2000;

template <typename T>
void EraseValue(std::deque<T>& from, const T& value) {
  auto it = std::find(from.begin(), from.end(), value);
  if (it != from.end()) from.erase(it);
}

}  // namespace

bool DeviceFits(v1::DeviceKind wanted, v1::DeviceKind have) {
  return wanted == v1::DEVICE_KIND_UNSPECIFIED || wanted == have;
}

absl::Duration Scheduler::Pause(int times) const {
  if (times <= 0) return absl::ZeroDuration();
  return std::min(options_.max_pause, options_.pause * (int64_t{1} << std::min(times - 1, 20)));
}

void Scheduler::Enqueue(Entry& entry, absl::Duration now) {
  JobQueue& queue = jobs_[entry.work.job];
  ++queue.queued;
  ++queued_;
  entry.queued_at = now;
  if (entry.not_before > now) {
    paused_.emplace(entry.not_before, entry.work.id);
  } else if (entry.work.front) {
    queue.ready.push_front(entry.work.id);
  } else {
    queue.ready.push_back(entry.work.id);
  }
}

void Scheduler::TakeFromQueue(Entry& entry) {
  JobQueue& queue = jobs_[entry.work.job];
  auto [begin, end] = paused_.equal_range(entry.not_before);
  auto it = std::find_if(begin, end, [&](const auto& item) { return item.second == entry.work.id; });
  if (it != end) {
    paused_.erase(it);
  } else {
    EraseValue(queue.ready, entry.work.id);
  }
  --queue.queued;
  --queued_;
}

void Scheduler::Bind(Entry& entry, const std::string& worker, absl::Duration now) {
  entry.leased = true;
  entry.worker = worker;
  entry.work.last_worker = worker;
  entry.expires = now + options_.lease;
  leases_[entry.work.id] = entry.expires;
  ++jobs_[entry.work.job].leased;
  auto it = workers_.find(worker);
  if (it != workers_.end()) ++it->second.leases;
}

void Scheduler::Unbind(Entry& entry) {
  entry.leased = false;
  leases_.erase(entry.work.id);
  --jobs_[entry.work.job].leased;
  auto it = workers_.find(entry.worker);
  if (it != workers_.end()) --it->second.leases;
  entry.worker.clear();
}

void Scheduler::Erase(const std::string& work) {
  auto it = works_.find(work);
  if (it == works_.end()) return;
  if (it->second.leased) {
    Unbind(it->second);
  } else {
    TakeFromQueue(it->second);
  }
  auto job = jobs_.find(it->second.work.job);
  if (job != jobs_.end() && job->second.queued == 0 && job->second.leased == 0) jobs_.erase(job);
  works_.erase(it);
}

bool Scheduler::Add(Work work, absl::Duration now) {
  auto [it, inserted] = works_.try_emplace(work.id);
  if (!inserted) return false;
  it->second.work = std::move(work);
  it->second.not_before = now;
  Enqueue(it->second, now);
  return true;
}

bool Scheduler::AddLeased(Work work, const std::string& worker, absl::Duration now) {
  auto [it, inserted] = works_.try_emplace(work.id);
  if (!inserted) return false;
  it->second.work = std::move(work);
  it->second.queued_at = now;
  Bind(it->second, worker, now);
  return true;
}

HelloOutcome Scheduler::Connect(uint64_t session, const v1::WorkerHello& hello, absl::Duration now) {
  HelloOutcome outcome;
  const std::string& id = hello.worker_id();
  auto [it, added] = workers_.try_emplace(id);
  Worker& worker = it->second;
  if (added) {
    // Leases restored from the journal may already be this worker's.
    for (const auto& [work, expires] : leases_) worker.leases += works_.at(work).worker == id ? 1 : 0;
  }
  if (worker.session != 0) {
    outcome.replaced_session = worker.session;
    sessions_.erase(worker.session);
  }
  sessions_[session] = id;
  worker.session = session;
  worker.hello = hello;
  worker.hello.clear_running();
  worker.hello.clear_unacknowledged();
  worker.hello.set_capacity(std::clamp(hello.capacity(), 1, kMaxCapacity));
  worker.slot_state = "idle";
  worker.draining = false;
  worker.last_heard = now;
  worker.not_before = now;
  worker.failures = 0;

  std::vector<std::string> restated;
  const auto restate = [&](const v1::Lease& lease, bool running) {
    if (!Holds(id, lease)) {
      if (running) outcome.revoked.push_back(lease);
      return;
    }
    restated.push_back(lease.work());
    Entry& entry = works_.at(lease.work());
    if (entry.leased) {
      entry.expires = now + options_.lease;
      leases_[entry.work.id] = entry.expires;
      return;
    }
    TakeFromQueue(entry);
    Bind(entry, id, now);
    outcome.taken_up.push_back({entry.work.id, entry.work.job, entry.work.attempts, id, session, {}});
  };
  for (const v1::Lease& lease : hello.running()) restate(lease, true);
  for (const v1::Lease& lease : hello.unacknowledged()) restate(lease, false);

  std::vector<std::string> gone;
  for (const auto& [work, expires] : leases_) {
    if (works_.at(work).worker != id) continue;
    if (std::find(restated.begin(), restated.end(), work) == restated.end()) gone.push_back(work);
  }
  for (const std::string& work : gone) {
    outcome.lost.push_back(Lose(works_.at(work), absl::StrCat("worker ", id, " came back without it"),
                                /*expired=*/false, /*front=*/true, now));
  }
  return outcome;
}

void Scheduler::Disconnect(uint64_t session, absl::Duration now) {
  auto it = sessions_.find(session);
  if (it == sessions_.end()) return;
  Worker& worker = workers_.at(it->second);
  worker.session = 0;
  worker.last_heard = now;
  sessions_.erase(it);
  ForgetGoneWorkers();
}

void Scheduler::ForgetGoneWorkers() {
  size_t gone = 0;
  auto oldest = workers_.end();
  for (auto it = workers_.begin(); it != workers_.end(); ++it) {
    if (it->second.session != 0 || it->second.leases > 0) continue;
    ++gone;
    if (oldest == workers_.end() || it->second.last_heard < oldest->second.last_heard) oldest = it;
  }
  if (gone > kMaxGoneWorkers) workers_.erase(oldest);
}

HeartbeatOutcome Scheduler::Heartbeat(uint64_t session, const v1::WorkerHeartbeat& heartbeat, absl::Duration now) {
  HeartbeatOutcome outcome;
  auto found = sessions_.find(session);
  if (found == sessions_.end()) return outcome;
  const std::string& id = found->second;
  Worker& worker = workers_.at(id);
  worker.last_heard = now;
  worker.slot_state = heartbeat.slot_state().substr(0, 32);
  worker.health = heartbeat.health().substr(0, kMaxHealth);
  worker.draining = heartbeat.draining();
  if (heartbeat.has_calibration()) SetCalibration(id, heartbeat.calibration());
  for (const v1::Lease& lease : heartbeat.running()) {
    if (!Holds(id, lease)) {
      outcome.revoked.push_back(lease);
      continue;
    }
    Entry& entry = works_.at(lease.work());
    if (entry.leased) {
      entry.expires = now + options_.lease;
      leases_[entry.work.id] = entry.expires;
    } else {
      TakeFromQueue(entry);
      Bind(entry, id, now);
      outcome.taken_up.push_back({entry.work.id, entry.work.job, entry.work.attempts, id, session, {}});
    }
  }
  return outcome;
}

const std::string* Scheduler::WorkerOf(uint64_t session) const {
  auto it = sessions_.find(session);
  return it == sessions_.end() ? nullptr : &it->second;
}

bool Scheduler::Usable(const Worker& worker, absl::Duration now) const {
  return worker.session != 0 && !worker.draining && worker.slot_state != "quarantined" &&
         now - worker.last_heard < options_.lease;
}

bool Scheduler::Fits(v1::DeviceKind device, const std::string& wanted, const std::string& id, const Worker& worker) {
  return DeviceFits(device, worker.hello.device().kind()) &&
         (wanted.empty() || wanted == id || wanted == worker.hello.name());
}

void Scheduler::SetCalibration(const std::string& worker, const v1::Calibration& calibration) {
  auto it = workers_.find(worker);
  if (it != workers_.end()) *it->second.hello.mutable_device()->mutable_calibration() = calibration;
}

Scheduler::Worker* Scheduler::Pick(const Entry& entry, absl::Duration now, std::string* id) {
  const auto avoided = [&](const std::string& worker) {
    return std::find(entry.avoid.begin(), entry.avoid.end(), worker) != entry.avoid.end();
  };
  // A busy worker that has not failed this work is worth waiting for; one that has is taken when there is no other.
  bool others = false;
  for (const auto& [name, worker] : workers_) {
    if (Usable(worker, now) && Fits(entry.work.device, entry.work.worker, name, worker) && !avoided(name)) {
      others = true;
    }
  }
  Worker* best = nullptr;
  for (auto& [name, worker] : workers_) {
    if (!Usable(worker, now) || worker.leases >= worker.hello.capacity() || worker.not_before > now) continue;
    if (!Fits(entry.work.device, entry.work.worker, name, worker)) continue;
    if (others && avoided(name)) continue;
    if (best == nullptr ||
        int64_t{worker.leases} * best->hello.capacity() < int64_t{best->leases} * worker.hello.capacity()) {
      best = &worker;
      *id = name;
    }
  }
  return best;
}

std::optional<Grant> Scheduler::MatchJob(const std::string& job, JobQueue& queue, absl::Duration now) {
  const size_t end = std::min(queue.ready.size(), kLookahead);
  for (size_t i = 0; i < end; ++i) {
    Entry& entry = works_.at(queue.ready[i]);
    std::string worker;
    if (Pick(entry, now, &worker) == nullptr) continue;
    const absl::Duration waited = now - entry.queued_at;
    queue.ready.erase(queue.ready.begin() + static_cast<std::ptrdiff_t>(i));
    --queue.queued;
    --queued_;
    ++entry.work.attempts;
    Bind(entry, worker, now);
    return Grant{entry.work.id, job, entry.work.attempts, worker, workers_.at(worker).session, waited};
  }
  return std::nullopt;
}

void Scheduler::WakePaused(absl::Duration now) {
  while (!paused_.empty() && paused_.begin()->first <= now) {
    Entry& entry = works_.at(paused_.begin()->second);
    paused_.erase(paused_.begin());
    std::deque<std::string>& ready = jobs_[entry.work.job].ready;
    entry.work.front ? ready.push_front(entry.work.id) : ready.push_back(entry.work.id);
  }
}

std::vector<Grant> Scheduler::Match(absl::Duration now) {
  std::vector<Grant> grants;
  WakePaused(now);
  const auto free_slot = [&] {
    return std::any_of(workers_.begin(), workers_.end(), [&](const auto& item) {
      return Usable(item.second, now) && item.second.leases < item.second.hello.capacity() &&
             item.second.not_before <= now;
    });
  };
  // From the job after the one served last, round and round, until a whole round gives nothing.
  size_t without = 0;
  while (queued_ > 0 && without < jobs_.size() && free_slot()) {
    auto it = jobs_.upper_bound(cursor_);
    if (it == jobs_.end()) it = jobs_.begin();
    cursor_ = it->first;
    if (std::optional<Grant> grant = MatchJob(it->first, it->second, now)) {
      grants.push_back(*std::move(grant));
      without = 0;
    } else {
      ++without;
    }
  }
  return grants;
}

Loss Scheduler::Lose(Entry& entry, const std::string& reason, bool expired, bool front, absl::Duration now) {
  Loss loss;
  loss.work = entry.work.id;
  loss.job = entry.work.job;
  loss.attempt = entry.work.attempts;
  loss.worker = entry.leased ? entry.worker : entry.work.last_worker;
  loss.reason = reason;
  loss.expired = expired;
  if (entry.work.reasons.size() < kMaxReasons) entry.work.reasons.push_back(reason);
  const int tried = entry.work.attempts - entry.work.attempts_base;
  if (tried >= options_.max_attempts) {
    loss.given_up = true;
    loss.reasons = entry.work.reasons;
    Erase(loss.work);
    return loss;
  }
  if (std::find(entry.avoid.begin(), entry.avoid.end(), loss.worker) == entry.avoid.end()) {
    entry.avoid.push_back(loss.worker);
  }
  if (entry.leased) {
    Unbind(entry);
  } else {
    TakeFromQueue(entry);
  }
  entry.not_before = now + Pause(tried - 1);
  entry.work.front = front;
  Enqueue(entry, now);
  return loss;
}

std::vector<Loss> Scheduler::Expire(absl::Duration now) {
  std::vector<std::string> over;
  for (const auto& [work, expires] : leases_) {
    if (expires <= now) over.push_back(work);
  }
  std::vector<Loss> losses;
  for (const std::string& work : over) {
    Entry& entry = works_.at(work);
    losses.push_back(Lose(entry, absl::StrCat("worker ", entry.worker, " was not heard of for a lease time"),
                          /*expired=*/true, /*front=*/true, now));
  }
  return losses;
}

bool Scheduler::Holds(const std::string& worker, const v1::Lease& lease) const {
  auto it = works_.find(lease.work());
  if (it == works_.end() || lease.attempt() <= 0 || it->second.work.attempts != lease.attempt()) return false;
  return it->second.leased ? it->second.worker == worker : it->second.work.last_worker == worker;
}

void Scheduler::Finish(const std::string& work, const std::string& worker) {
  auto it = workers_.find(worker);
  if (it != workers_.end()) {
    ++it->second.finished;
    it->second.failures = 0;
    it->second.not_before = absl::ZeroDuration();
  }
  Erase(work);
}

Loss Scheduler::Fail(const std::string& worker, const v1::Lease& lease, const std::string& reason, absl::Duration now) {
  Entry& entry = works_.at(lease.work());
  const std::vector<std::string>& before = entry.work.reasons;
  // What has failed so before, where nothing else has, fails by itself, and others are not to wait for its worker.
  const bool again = std::find(before.begin(), before.end(), reason) != before.end();
  auto it = workers_.find(worker);
  if (it != workers_.end() && !(again && it->second.failures <= 1)) {
    ++it->second.failures;
    it->second.not_before = now + Pause(it->second.failures);
  }
  return Lose(entry, reason, /*expired=*/false, /*front=*/false, now);
}

std::vector<Held> Scheduler::RemoveJob(const std::string& job) {
  std::vector<Held> held;
  std::vector<std::string> all;
  if (!jobs_.contains(job)) return held;
  for (const auto& [id, entry] : works_) {
    if (entry.work.job != job) continue;
    all.push_back(id);
    if (!entry.leased) continue;
    Held one;
    one.lease.set_work(id);
    one.lease.set_attempt(entry.work.attempts);
    auto worker = workers_.find(entry.worker);
    one.session = worker == workers_.end() ? 0 : worker->second.session;
    held.push_back(std::move(one));
  }
  // The whole queue goes at once: taking 10,000 entries out of a deque one by one would be quadratic.
  queued_ -= jobs_[job].queued;
  jobs_[job].ready.clear();
  jobs_[job].queued = 0;
  for (auto it = paused_.begin(); it != paused_.end();) {
    it = works_.at(it->second).work.job == job ? paused_.erase(it) : std::next(it);
  }
  for (const std::string& id : all) {
    Entry& entry = works_.at(id);
    if (entry.leased) Unbind(entry);
    works_.erase(id);
  }
  jobs_.erase(job);
  return held;
}

void Scheduler::RenewLeases(absl::Duration now) {
  for (auto& [work, expires] : leases_) {
    expires = now + options_.lease;
    works_.at(work).expires = expires;
  }
}

absl::Duration Scheduler::NextDeadline(absl::Duration now) const {
  absl::Duration next = absl::InfiniteDuration();
  for (const auto& [work, expires] : leases_) next = std::min(next, expires);
  if (auto it = paused_.upper_bound(now); it != paused_.end()) next = std::min(next, it->first);
  if (queued_ > 0) {
    for (const auto& [id, worker] : workers_) {
      if (worker.session != 0 && worker.not_before > now) next = std::min(next, worker.not_before);
    }
  }
  return next;
}

int Scheduler::FittingCapacity(v1::DeviceKind device, absl::Duration now, const std::string& wanted) const {
  int capacity = 0;
  for (const auto& [id, worker] : workers_) {
    if (Usable(worker, now) && Fits(device, wanted, id, worker)) capacity += worker.hello.capacity();
  }
  return capacity;
}

int Scheduler::QueuedOf(const std::string& job) const {
  auto it = jobs_.find(job);
  return it == jobs_.end() ? 0 : it->second.queued;
}

int Scheduler::LeasedOf(const std::string& job) const {
  auto it = jobs_.find(job);
  return it == jobs_.end() ? 0 : it->second.leased;
}

absl::Duration Scheduler::OldestQueuedAge(absl::Duration now) const {
  absl::Duration oldest = absl::ZeroDuration();
  for (const auto& [job, queue] : jobs_) {
    if (!queue.ready.empty()) oldest = std::max(oldest, now - works_.at(queue.ready.front()).queued_at);
  }
  for (const auto& [when, work] : paused_) oldest = std::max(oldest, now - works_.at(work).queued_at);
  return oldest;
}

std::vector<WorkerView> Scheduler::Workers() const {
  std::vector<WorkerView> views;
  absl::flat_hash_map<std::string, size_t> places;
  for (const auto& [id, worker] : workers_) {
    WorkerView view;
    view.id = id;
    view.session = worker.session;
    view.hello = worker.hello;
    view.slot_state = worker.slot_state;
    view.health = worker.health;
    view.draining = worker.draining;
    view.last_heard = worker.last_heard;
    view.finished = worker.finished;
    places[id] = views.size();
    views.push_back(std::move(view));
  }
  for (const auto& [work, expires] : leases_) {
    const Entry& entry = works_.at(work);
    auto it = places.find(entry.worker);
    if (it == places.end()) continue;
    v1::Lease lease;
    lease.set_work(work);
    lease.set_attempt(entry.work.attempts);
    views[it->second].running.push_back(std::move(lease));
  }
  return views;
}

}  // namespace grove::scheduler
