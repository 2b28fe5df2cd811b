// Theory of operation.
//
// One thread runs turns. A turn takes the messages that wait, lets each change the jobs' trees by way of events (Emit
// applies an event at once and puts it in the batch), lets timers, policies and the scheduler act on what came of it,
// and commits the batch in one transaction. Only then does anything leave the engine: replies, acknowledgements,
// assignments, events for watchers. Readers see each job as of the last commit, never what is about to be written.
//
// When a commit fails, the batch is kept and tried again until it is stored; until then nothing may change: callers get
// UNAVAILABLE with the cause, results of workers and generators wait, readers are served. That is sound because a batch
// that was stored although its commit failed may be stored again without effect (store.h).
#include "coordinator/engine/engine_impl.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "common/base/hash.h"
#include "common/base/ids.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "coordinator/engine/engine_loop.h"
#include "coordinator/engine/validate.h"

namespace grove::coordinator {
namespace engine_internal {

// ---------------------------------------------------------------------------------------------------- messages

void EngineImpl::Post(Message message) {
  absl::Status refused;
  {
    std::lock_guard<std::mutex> lock(mu_);
    if (stopped_) {
      refused = absl::CancelledError("the coordinator is stopping");
    } else if (mailbox_.size() >= kMaxWaiting && message.kind != Kind::kDefer) {
      refused = absl::ResourceExhaustedError("too many calls wait for the coordinator; try again later");
    } else {
      mailbox_.push_back(std::move(message));
      if (mailbox_.size() == 1) wake_.notify_one();
      return;
    }
  }
  if (message.refuse) message.refuse(refused);
}

void EngineImpl::Stop() {
  {
    std::lock_guard<std::mutex> lock(mu_);
    stopping_ = true;
    wake_.notify_one();
  }
  if (std::this_thread::get_id() == thread_.get_id()) return;
  std::lock_guard<std::mutex> lock(join_mu_);
  if (thread_.joinable()) thread_.join();
}

void EngineImpl::Loop() {
  for (;;) {
    std::vector<Message> messages;
    {
      std::unique_lock<std::mutex> lock(mu_);
      deadline_ = NextDeadline();
      const absl::Duration wait = deadline_ - clock_.Monotonic();
      if (mailbox_.empty() && !stopping_ && wait > absl::ZeroDuration()) {
        const auto ready = [this] { return stopping_ || !mailbox_.empty(); };
        if (wait > absl::Hours(1)) {
          wake_.wait_for(lock, std::chrono::hours(1), ready);
        } else {
          wake_.wait_for(lock, absl::ToChronoNanoseconds(wait), ready);
        }
      }
      if (stopping_) break;
      const size_t count = std::min(mailbox_.size(), kMaxTurn);
      for (size_t i = 0; i < count; ++i) {
        messages.push_back(std::move(mailbox_.front()));
        mailbox_.pop_front();
      }
    }
    Turn(std::move(messages));
  }
  std::deque<Message> rest;
  {
    std::lock_guard<std::mutex> lock(mu_);
    stopped_ = true;
    rest.swap(mailbox_);
  }
  const absl::Status stopping = absl::CancelledError("the coordinator is stopping");
  for (auto* list : {&rest, &deferred_}) {
    for (Message& message : *list) {
      if (message.refuse) message.refuse(stopping);
    }
  }
  for (Effect& effect : effects_) {
    if (effect.fail) effect.fail(stopping);
  }
  for (auto& [id, job] : jobs_) {
    for (Waiter& waiter : job->waiters) waiter.reply(stopping);
    job->waiters.clear();
    if (job->search != nullptr) job->search->generator->Cancel();
  }
  for (auto& [number, session] : sessions_) {
    session.link->Close(absl::UnavailableError("the coordinator is stopping; dial in again later"));
  }
  sessions_.clear();
}

void EngineImpl::RunMessage(Message& message) {
  if (!store_error_.ok() && message.kind == Kind::kChange) {
    if (message.refuse) message.refuse(Broken());
    return;
  }
  if (!store_error_.ok() && message.kind == Kind::kDefer) {
    if (deferred_.size() < kMaxDeferred) {
      deferred_.push_back(std::move(message));
    } else if (message.refuse) {
      message.refuse(Broken());
    }
    return;
  }
  if (message.kind != Kind::kRead) changed_ = true;
  message.run();
}

void EngineImpl::Turn(std::vector<Message> messages) {
  now_ = clock_.Monotonic();
  changed_ = now_ >= deadline_;
  if (!store_error_.ok() && now_ >= store_retry_at_) Commit();
  if (store_error_.ok() && !deferred_.empty()) {
    std::deque<Message> deferred;
    deferred.swap(deferred_);
    for (Message& message : deferred) RunMessage(message);
  }
  for (Message& message : messages) RunMessage(message);
  if (store_error_.ok()) {
    Timers();
    Advance();
    Commit();
  }
  ForgetTrees();
}

// What is due already was acted upon by this turn; only what comes later needs another one.
absl::Duration EngineImpl::NextDeadline() const {
  if (!store_error_.ok()) return store_retry_at_;
  if (again_) return now_;
  absl::Duration next = std::min(scheduler_.NextDeadline(now_), next_fit_check_);
  for (const auto& [id, job] : live_) {
    if (job->search == nullptr) continue;
    next = std::min(next, job->search->deadline);
    if (job->search->outages > 0 && job->search->retry_at > now_) next = std::min(next, job->search->retry_at);
  }
  return next;
}

void EngineImpl::Timers() {
  for (const scheduler::Loss& loss : scheduler_.Expire(now_)) {
    ++stats_.leases_expired_total;
    LogWarning("scheduler", "lease of ", loss.work, " (attempt ", loss.attempt, ") on ", loss.worker, " expired");
    Lost(loss);
    changed_ = true;
  }
  std::vector<Job*> late;
  for (const auto& [id, job] : live_) {
    if (job->search == nullptr) continue;
    if (job->search->deadline <= now_) late.push_back(job);
  }
  for (Job* job : late) {
    KeepBest(*job);
    EndJob(*job, v1::JOB_STATE_DONE, "the search's time (max_seconds) is up");
    changed_ = true;
  }
}

// Lets policies, generators and the scheduler act until nothing comes of it any more.
void EngineImpl::Advance() {
  for (int i = 0; changed_ && i < kMaxAdvances; ++i) {
    changed_ = false;
    std::vector<Job*> jobs;
    for (const auto& [id, job] : live_) jobs.push_back(job);
    for (Job* job : jobs) {
      if (job->live()) Pump(*job);
    }
    if (!draining_) {
      DispatchGenerators();
      for (const scheduler::Grant& grant : scheduler_.Match(now_)) Assign(grant);
    }
    next_fit_check_ = absl::InfiniteDuration();
    for (Job* job : jobs) {
      if (job->live()) CheckPause(*job);
    }
  }
  again_ = changed_;
}

// ---------------------------------------------------------------------------------------------------- committing

void EngineImpl::Emit(Job& job, v1::Event event) {
  event.set_seq(next_seq_++);
  event.set_job(job.id);
  event.set_time_unix_nanos(absl::ToUnixNanos(clock_.Now()));
  const int open_before = job.tree->open_kernels();
  const bool live_before = job.live();
  if (absl::Status status = job.tree->Apply(event); !status.ok()) {
    // The engine made an event that its own fold refuses: a bug. It is not written; the job stays as it was.
    LogError("engine", "dropped an event that does not fit: ", status.message());
    --next_seq_;
    return;
  }
  if (live_before) open_kernels_ += job.tree->open_kernels() - open_before;
  store::EventRow row;
  row.seq = event.seq();
  row.job = job.id;
  row.kind = static_cast<int>(event.body_case());
  row.time_unix_nanos = event.time_unix_nanos();
  row.payload = event.SerializeAsString();
  batch_.events.push_back(std::move(row));
  dirty_[job.id] = &job;
  changed_ = true;
}

std::string EngineImpl::PutBlob(std::string content) {
  std::string sha256 = Sha256Hex(content);
  batch_.blobs.push_back({sha256, std::move(content)});
  return sha256;
}

absl::StatusOr<std::string> EngineImpl::ReadBlob(const std::string& sha256) {
  for (const store::BlobWrite& blob : batch_.blobs) {
    if (blob.sha256 == sha256) return blob.content;
  }
  return store_.ReadBlob(sha256);
}

absl::StatusOr<v1::Event> EngineImpl::ReadEvent(uint64_t seq) {
  std::string payload;
  if (!batch_.events.empty() && seq >= batch_.events.front().seq) {
    payload = batch_.events.at(seq - batch_.events.front().seq).payload;
  } else {
    GROVE_ASSIGN_OR_RETURN(payload, store_.ReadEvent(seq));
  }
  v1::Event event;
  if (!event.ParseFromString(payload)) {
    return absl::DataLossError(absl::StrCat("event ", seq, " of the journal cannot be understood"));
  }
  return event;
}

void EngineImpl::SendAfterCommit(uint64_t session, v1::CoordinatorMessage message) {
  if (session == 0) return;
  AfterCommit([this, session, message = std::move(message)]() mutable {
    auto it = sessions_.find(session);
    if (it != sessions_.end()) it->second.link->Send(std::move(message));
  });
}

void EngineImpl::Commit() {
  // Rows of jobs whose state must be found without folding: new ones and those that end or begin again.
  if (store_error_.ok()) {
    for (auto& [id, job] : dirty_) {
      if (job->stored && IsEnded(job->state) == job->tree->ended()) continue;
      store::JobRow row;
      row.id = job->id;
      row.idempotency_key = job->key;
      row.created_unix_nanos = job->created;
      row.ended = job->tree->ended();
      row.summary = job->tree->Summary().SerializeAsString();
      batch_.jobs.push_back(std::move(row));
    }
  }
  absl::Status status = store_.Commit(batch_);
  if (status.ok()) {
    if (!store_error_.ok()) {
      LogInfo("engine", "the store can be written again");
      store_error_ = absl::OkStatus();
      stats_.store_error.clear();
      scheduler_.RenewLeases(now_);
      changed_ = true;
    }
    Committed();
    return;
  }
  if (store_error_.ok()) {
    LogError("engine", "the store cannot be written, nothing is acknowledged until it can: ", status.message());
    store_retry_pause_ = kStoreRetryFirst;
  } else {
    store_retry_pause_ = std::min(kStoreRetryMax, store_retry_pause_ * 2);
  }
  store_error_ = status;
  stats_.store_error = std::string(status.message());
  store_retry_at_ = now_ + store_retry_pause_;
  // Callers are told at once; what else hangs on this batch waits for it.
  std::vector<Effect> rest;
  for (Effect& effect : effects_) {
    if (effect.fail) {
      effect.fail(Broken());
    } else {
      rest.push_back(std::move(effect));
    }
  }
  effects_ = std::move(rest);
}

void EngineImpl::Committed() {
  stats_.events_total += static_cast<int64_t>(batch_.events.size());
  batch_ = store::WriteBatch();
  committed_seq_ = next_seq_ - 1;
  std::map<std::string, Job*> dirty;
  dirty.swap(dirty_);
  for (auto& [id, job] : dirty) RefreshView(*job);
  std::vector<Effect> effects;
  effects.swap(effects_);
  for (Effect& effect : effects) effect.run();
  for (auto& [id, job] : dirty) ServeWaiters(*job);
}

void EngineImpl::RefreshView(Job& job) {
  job.summary = job.tree->Summary().SerializeAsString();
  job.state = job.tree->state();
  job.last_seq = job.tree->last_seq();
  job.stored = true;
}

}  // namespace engine_internal

absl::StatusOr<std::unique_ptr<Engine>> CreateEngine(EngineOptions options, EngineDependencies dependencies) {
  auto engine = std::make_unique<engine_internal::EngineImpl>(std::move(options), std::move(dependencies));
  GROVE_RETURN_IF_ERROR(engine->Restore());
  engine->Start();
  return engine;
}

}  // namespace grove::coordinator
