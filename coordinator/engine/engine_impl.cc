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

#include <google/protobuf/arena.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/hash.h"
#include "common/base/ids.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "coordinator/bank/bank.h"
#include "coordinator/engine/bounds.h"
#include "coordinator/engine/executor.h"
#include "coordinator/engine/job_tree.h"
#include "coordinator/engine/normalise.h"
#include "coordinator/engine/validate.h"
#include "coordinator/scheduler/scheduler.h"

namespace grove::coordinator {
namespace {

constexpr size_t kMaxTurn = 512;              // messages of one turn: bounds the batch and the time to the first reply
constexpr size_t kMaxWaiting = 100'000;       // messages in the mailbox: beyond that callers get RESOURCE_EXHAUSTED
constexpr size_t kMaxDeferred = 10'000;       // put off while the store cannot be written
constexpr size_t kMaxWaiters = 10'000;        // watchers of all jobs
constexpr size_t kProgressRing = 256;         // progress events kept per job
constexpr size_t kLoadedTrees = 4;            // trees of ended jobs that stay in memory after somebody looked at them
constexpr int kMaxLiveJobs = 10'000;          // submitted and not ended
constexpr int64_t kMaxOpenKernels = 200'000;  // waiting for a verdict, over all jobs
constexpr size_t kMaxTriedIdeas = 1000;       // newest ideas that a generator is told of: a prompt has no room for more
constexpr size_t kMaxSiblings = 8;
constexpr size_t kProblemCacheBytes = 8 << 20;
constexpr size_t kMaxStageSamples = 10'000;                // between two snapshots, per stage
constexpr int kMaxAdvances = 16;                           // of one turn: more is for the next one
constexpr int kRunAhead = 2;                               // ready evaluations beyond one per slot
constexpr absl::Duration kUnfitGrace = absl::Seconds(10);  // a worker may be about to connect
constexpr absl::Duration kOutageFirst = absl::Seconds(1);
constexpr absl::Duration kOutageMax = absl::Minutes(5);
constexpr absl::Duration kStoreRetryFirst = absl::Milliseconds(250);
constexpr absl::Duration kStoreRetryMax = absl::Seconds(5);
constexpr size_t kMaxDescriptionBytes = 1 << 20;  // of a ProblemDescription in the journal

std::string LowerVerdict(v1::Verdict verdict) {
  std::string name = v1::Verdict_Name(verdict);
  return absl::AsciiStrToLower(name.substr(std::min<size_t>(name.size(), 8)));  // without VERDICT_
}

std::string LowerJobState(v1::JobState state) {
  std::string name = v1::JobState_Name(state);
  return absl::AsciiStrToLower(name.substr(std::min<size_t>(name.size(), 10)));  // without JOB_STATE_
}

const char* DeviceName(v1::DeviceKind device) {
  return device == v1::DEVICE_KIND_CUDA ? "cuda" : device == v1::DEVICE_KIND_CPU ? "cpu" : "any";
}

bool IsOutage(const absl::Status& status) { return absl::IsUnavailable(status) || absl::IsResourceExhausted(status); }

bool IsEnded(v1::JobState state) {
  return state == v1::JOB_STATE_DONE || state == v1::JOB_STATE_CANCELLED || state == v1::JOB_STATE_FAILED;
}

// What one message may do while the store cannot be written.
enum class Kind {
  kRead,    // is served
  kChange,  // is refused
  kDefer,   // waits
};

struct Message {
  Kind kind = Kind::kRead;
  std::function<void()> run;
  std::function<void(absl::Status)> refuse;  // may be null
};

struct Waiter {
  uint64_t ticket = 0;
  uint64_t after_seq = 0;
  int64_t progress_cursor = -1;
  int max = 0;
  Reply<EventBatch> reply;
};

// A running search beyond its tree: lost in a crash and made again.
struct Search {
  uint64_t number = 0;  // answers of generator calls that belong to an earlier life are told by it
  std::shared_ptr<generate::Generator> generator;
  bool support_asked = false;
  bool supported = false;
  std::deque<search::Action> held;  // ProposeIdeas and WriteKernel that wait for a thread
  int in_flight = 0;
  int outages = 0;  // in a row
  std::string outage;
  absl::Duration retry_at;
  absl::Duration deadline = absl::InfiniteDuration();  // max_seconds
  std::string last_error;                              // why the generator gave nothing
};

struct Job {
  std::string id;
  std::string key;
  int64_t created = 0;
  // As of the last commit.
  std::string summary;
  v1::JobState state = v1::JOB_STATE_UNSPECIFIED;
  uint64_t last_seq = 0;
  bool stored = false;
  // Present while the job has not ended, and for a while after somebody looked at it.
  std::unique_ptr<JobTree> tree;
  uint64_t used = 0;
  // Only while the job has not ended.
  std::unique_ptr<Search> search;
  absl::flat_hash_map<int, std::vector<int>> duplicates;  // kernels that wait for the verdict of an equal one
  v1::DeviceKind device = v1::DEVICE_KIND_UNSPECIFIED;    // what its work needs
  absl::Duration unfit_since = absl::InfiniteDuration();
  bool unfit = false;
  // Watching.
  std::vector<Waiter> waiters;
  std::deque<v1::Event> progress;
  uint64_t progress_next = 0;  // cursor after the newest

  bool live() const { return tree != nullptr && !tree->ended(); }
};

struct Session {
  std::shared_ptr<WorkerLink> link;
};

using IdeasResult = absl::StatusOr<generate::IdeasAnswer>;
using KernelResult = absl::StatusOr<generate::KernelAnswer>;

class EngineImpl : public Engine {
 public:
  EngineImpl(EngineOptions options, EngineDependencies dependencies)
      : options_(std::move(options)),
        deps_(std::move(dependencies)),
        clock_(*deps_.clock),
        store_(*deps_.store),
        scheduler_(SchedulerOptions(options_)),
        started_(absl::ToUnixNanos(clock_.Now())),
        executor_(std::make_unique<Executor>(std::max(1, options_.generator_threads))) {}

  ~EngineImpl() override {
    Stop();
    executor_.reset();
  }

  absl::Status Restore();
  void Start() {
    thread_ = std::thread([this] { Loop(); });
  }

  void SubmitJob(v1::SubmitJobRequest request, Reply<v1::SubmitJobResponse> reply) override {
    auto shared = std::make_shared<v1::SubmitJobRequest>(std::move(request));
    Ask<v1::SubmitJobResponse>(Kind::kChange, std::move(reply), [this, shared](auto r) { DoSubmit(*shared, r); });
  }
  void GetJob(std::string id, Reply<v1::Job> reply) override {
    Ask<v1::Job>(Kind::kRead, std::move(reply), [this, id](auto r) { r(DoGetJob(id)); });
  }
  void ListJobs(v1::ListJobsRequest request, Reply<v1::ListJobsResponse> reply) override {
    Ask<v1::ListJobsResponse>(Kind::kRead, std::move(reply), [this, request](auto r) { r(DoListJobs(request)); });
  }
  void CancelJob(v1::CancelJobRequest request, Reply<v1::Job> reply) override {
    Ask<v1::Job>(Kind::kChange, std::move(reply), [this, request](auto r) { DoCancel(request, r); });
  }
  void ResumeJob(v1::ResumeJobRequest request, Reply<v1::Job> reply) override {
    Ask<v1::Job>(Kind::kChange, std::move(reply), [this, request](auto r) { DoResume(request, r); });
  }
  uint64_t NextEvents(std::string job, uint64_t after_seq, int64_t progress_cursor, int max,
                      Reply<EventBatch> reply) override {
    const uint64_t ticket = next_ticket_.fetch_add(1);
    Ask<EventBatch>(Kind::kRead, std::move(reply), [this, job, ticket, after_seq, progress_cursor, max](auto r) {
      DoNextEvents(job, Waiter{ticket, after_seq, progress_cursor, std::clamp(max, 1, 10'000), std::move(r)});
    });
    return ticket;
  }
  void CancelWait(uint64_t ticket) override {
    Post({Kind::kRead, [this, ticket] { DoCancelWait(ticket); }, nullptr});
  }
  void GetTree(std::string job, int64_t offset, int max, Reply<std::vector<v1::TreeNode>> reply) override {
    Ask<std::vector<v1::TreeNode>>(Kind::kRead, std::move(reply),
                                   [this, job, offset, max](auto r) { r(DoGetTree(job, offset, max)); });
  }
  void GetNode(std::string id, Reply<v1::TreeNode> reply) override {
    Ask<v1::TreeNode>(Kind::kRead, std::move(reply), [this, id](auto r) { r(DoGetNode(id)); });
  }
  void GetArtifact(std::string sha256, Reply<std::string> reply) override {
    Ask<std::string>(Kind::kRead, std::move(reply), [this, sha256](auto r) { r(store_.ReadBlob(sha256)); });
  }
  void ListBank(v1::ListBankRequest request, Reply<v1::ListBankResponse> reply) override {
    Ask<v1::ListBankResponse>(Kind::kRead, std::move(reply), [this, request](auto r) {
      v1::ListBankResponse response;
      for (const bank::Entry* entry : bank_.List(request.operation(), request.device())) {
        *response.add_entries() = entry->entry;
      }
      r(std::move(response));
    });
  }
  void GetBankEntry(std::string id, Reply<v1::BankEntry> reply) override {
    Ask<v1::BankEntry>(Kind::kRead, std::move(reply), [this, id](auto r) {
      absl::StatusOr<const bank::Entry*> entry = bank_.Find(id);
      r(entry.ok() ? WithSource(**entry) : absl::StatusOr<v1::BankEntry>(entry.status()));
    });
  }
  void AddBankEntry(v1::AddBankEntryRequest request, Reply<v1::BankEntry> reply) override {
    Ask<v1::BankEntry>(Kind::kChange, std::move(reply), [this, request](auto r) { DoAddBank(request, r); });
  }
  void RemoveBankEntry(std::string id, Reply<v1::RemoveBankEntryResponse> reply) override {
    Ask<v1::RemoveBankEntryResponse>(Kind::kChange, std::move(reply), [this, id](auto r) {
      absl::StatusOr<const bank::Entry*> entry = bank_.Find(id);
      if (!entry.ok()) return r(entry.status());
      bank_.Remove(std::string((*entry)->entry.id()), &batch_);
      AfterCommit<v1::RemoveBankEntryResponse>(std::move(r), [] { return v1::RemoveBankEntryResponse(); });
    });
  }

  uint64_t WorkerConnected(v1::WorkerHello hello, std::shared_ptr<WorkerLink> link) override {
    const uint64_t session = next_session_.fetch_add(1);
    Post({Kind::kDefer, [this, session, hello = std::move(hello), link] { DoHello(session, hello, link); },
          [link](absl::Status status) { link->Close(std::move(status)); }});
    return session;
  }
  void WorkerSaid(uint64_t session, v1::WorkerMessage message) override;
  void WorkerClosed(uint64_t session) override {
    Post({Kind::kDefer,
          [this, session] {
            scheduler_.Disconnect(session, now_);
            sessions_.erase(session);
          },
          nullptr});
  }
  void ListWorkers(Reply<v1::ListWorkersResponse> reply) override {
    Ask<v1::ListWorkersResponse>(Kind::kRead, std::move(reply), [this](auto r) { r(DoListWorkers()); });
  }
  void GetFarmInfo(Reply<v1::FarmInfo> reply) override {
    Ask<v1::FarmInfo>(Kind::kRead, std::move(reply), [this](auto r) {
      v1::FarmInfo info;
      info.set_version(options_.version);
      info.set_data_dir(options_.data_dir);
      info.set_started_unix_nanos(started_);
      info.set_queued(static_cast<int>(scheduler_.queued()));
      info.set_running(static_cast<int>(scheduler_.leased()));
      r(std::move(info));
    });
  }
  void Stats(Reply<EngineStats> reply) override {
    Ask<EngineStats>(Kind::kRead, std::move(reply), [this](auto r) { r(DoStats()); });
  }
  void Drain() override {
    Post({Kind::kRead, [this] { draining_ = true; }, nullptr});
  }
  void Stop() override;

 private:
  static scheduler::Options SchedulerOptions(const EngineOptions& options) {
    scheduler::Options out;
    out.lease = options.lease;
    out.max_attempts = options.max_attempts;
    return out;
  }

  // ------------------------------------------------------------------------------------------------ messages
  void Post(Message message);
  template <typename T>
  void Ask(Kind kind, Reply<T> reply, std::function<void(Reply<T>)> run) {
    Post({kind, [reply, run = std::move(run)] { run(reply); },
          [reply](absl::Status status) { reply(std::move(status)); }});
  }
  void Loop();
  void Turn(std::vector<Message> messages);
  void RunMessage(Message& message);
  absl::Status Broken() const {
    return absl::UnavailableError(
        absl::StrCat("the coordinator's store cannot be written: ", store_error_.message(), "; try again"));
  }

  // ------------------------------------------------------------------------------------------------ committing
  // After the turn's commit: `make` on success, the error otherwise.
  template <typename T>
  void AfterCommit(Reply<T> reply, std::function<absl::StatusOr<T>()> make) {
    effects_.push_back({[reply, make = std::move(make)] { reply(make()); },
                        [reply](absl::Status status) { reply(std::move(status)); }});
  }
  // After the turn's commit, however long that takes.
  void AfterCommit(std::function<void()> run) { effects_.push_back({std::move(run), nullptr}); }
  void SendAfterCommit(uint64_t session, v1::CoordinatorMessage message);
  void Commit();
  void Committed();
  void RefreshView(Job& job);
  void ServeWaiters(Job& job);
  void Emit(Job& job, v1::Event event);
  std::string PutBlob(std::string content);
  absl::StatusOr<std::string> ReadBlob(const std::string& sha256);
  absl::StatusOr<v1::Event> ReadEvent(uint64_t seq);

  // ------------------------------------------------------------------------------------------------ jobs
  absl::StatusOr<Job*> FindJob(const std::string& id);
  absl::Status LoadTree(Job& job);
  void ForgetTrees();
  void BeginRun(Job& job);
  void EndJob(Job& job, v1::JobState state, const std::string& reason);
  v1::Job View(const Job& job) const;
  v1::Event StateEvent(v1::JobState state, const std::string& reason) const {
    v1::Event event;
    event.mutable_job_state()->set_state(state);
    event.mutable_job_state()->set_reason(Utf8Prefix(reason, 2000));
    return event;
  }
  void DoSubmit(const v1::SubmitJobRequest& request, Reply<v1::SubmitJobResponse> reply);
  absl::StatusOr<v1::Job> DoGetJob(const std::string& id);
  v1::ListJobsResponse DoListJobs(const v1::ListJobsRequest& request);
  void DoCancel(const v1::CancelJobRequest& request, Reply<v1::Job> reply);
  void DoResume(const v1::ResumeJobRequest& request, Reply<v1::Job> reply);
  void DoNextEvents(const std::string& id, Waiter waiter);
  void DoCancelWait(uint64_t ticket);
  bool Serve(Job& job, Waiter& waiter);
  absl::StatusOr<std::vector<v1::TreeNode>> DoGetTree(const std::string& id, int64_t offset, int max);
  absl::StatusOr<v1::TreeNode> DoGetNode(const std::string& id);
  v1::IdeaNode IdeaView(const Job& job, int index) const;
  absl::StatusOr<v1::KernelNode> KernelView(const Job& job, int index, bool whole);
  absl::StatusOr<std::shared_ptr<const v1::Problem>> ProblemOf(const Job& job);

  // ------------------------------------------------------------------------------------------------ evaluations
  std::string DescribeId(const Job& job) const { return absl::StrCat(job.id, "/describe"); }
  Job* JobOfWork(const std::string& work);
  void Evaluate(Job& job, int kernel);
  void AddKernelWork(Job& job, int kernel);
  void FinishKernel(Job& job, int kernel, int attempt, v1::EvaluationResult whole);
  void FinishDuplicate(Job& job, int kernel, int original);
  void Lost(const scheduler::Loss& loss);
  void LeasedEvent(const std::string& work, int attempt, const std::string& worker);
  void Assign(const scheduler::Grant& grant);
  void DoHello(uint64_t session, const v1::WorkerHello& hello, const std::shared_ptr<WorkerLink>& link);
  void DoHeartbeat(uint64_t session, const v1::WorkerHeartbeat& heartbeat);
  void DoProgress(uint64_t session, const v1::WorkerProgress& progress);
  void DoResult(uint64_t session, v1::WorkResult result);
  void Described(Job& job, v1::ProblemDescription description);
  void Revoke(uint64_t session, const v1::Lease& lease, const std::string& reason);
  v1::ListWorkersResponse DoListWorkers();
  EngineStats DoStats();

  // ------------------------------------------------------------------------------------------------ searching
  void Pump(Job& job);
  bool Act(Job& job, search::Action action);
  void DispatchGenerators();
  bool CanDispatch(const Job& job) const;
  void Dispatch(Job& job);
  absl::StatusOr<generate::Context> ContextOf(Job& job);
  void Answered(const std::string& id, uint64_t number, const search::ProposeIdeas& action, IdeasResult result);
  void Answered(const std::string& id, uint64_t number, const search::WriteKernel& action, KernelResult result);
  void SupportAnswered(const std::string& id, uint64_t number, absl::Status status);
  Job* SearchOf(const std::string& id, uint64_t number);
  bool Outage(Job& job, const absl::Status& status);
  void Usage(Job& job, const std::string& request, const absl::Status& status, const generate::Usage& usage);
  template <typename Answer>
  void Usage(Job& job, const std::string& request, const absl::StatusOr<Answer>& answer) {
    if (answer.ok()) {
      Usage(job, request, absl::OkStatus(), answer->usage);
    } else if (deps_.usage_of) {
      Usage(job, request, answer.status(), deps_.usage_of(answer.status()));
    }
  }
  void CheckPause(Job& job);
  void KeepBest(Job& job);
  absl::StatusOr<v1::BankEntry> WithSource(const bank::Entry& entry);
  void DoAddBank(const v1::AddBankEntryRequest& request, Reply<v1::BankEntry> reply);

  void Timers();
  void Advance();
  absl::Duration NextDeadline() const;

  const EngineOptions options_;
  EngineDependencies deps_;
  Clock& clock_;
  store::Store& store_;
  scheduler::Scheduler scheduler_;
  bank::Bank bank_;
  const int64_t started_;
  std::atomic<uint64_t> next_ticket_{1};
  std::atomic<uint64_t> next_session_{1};

  // The mailbox.
  std::mutex mu_;
  std::condition_variable wake_;
  std::deque<Message> mailbox_;
  bool stopping_ = false;
  bool stopped_ = false;  // the loop has ended; messages are refused where they are posted
  std::thread thread_;
  std::mutex join_mu_;

  // The rest is the loop's.
  absl::Duration now_;       // monotonic, of the turn
  absl::Duration deadline_;  // when the loop wanted to be woken at the latest
  bool draining_ = false;
  bool again_ = false;    // the turn left something to do
  bool changed_ = false;  // this turn ran something that may have made work for policies or the scheduler
  std::deque<Message> deferred_;
  absl::Status store_error_;
  absl::Duration store_retry_at_;
  absl::Duration store_retry_pause_;
  uint64_t next_seq_ = 1;       // of the next event
  uint64_t committed_seq_ = 0;  // everything up to here is durable
  struct Effect {
    std::function<void()> run;
    std::function<void(absl::Status)> fail;  // a reply that does not wait for a store that fails
  };
  store::WriteBatch batch_;
  std::vector<Effect> effects_;
  std::map<std::string, Job*> dirty_;  // jobs with events in the batch

  std::map<std::string, std::unique_ptr<Job>> jobs_;
  std::vector<Job*> order_;  // as created
  absl::flat_hash_map<std::string, std::string> keys_;
  std::map<std::string, Job*> live_;
  absl::flat_hash_set<Job*> loaded_;  // ended jobs whose tree may be in memory
  std::string generator_cursor_;
  uint64_t uses_ = 0;
  uint64_t next_search_ = 1;
  int generators_busy_ = 0;
  size_t waiters_ = 0;
  int64_t open_kernels_ = 0;
  absl::flat_hash_map<uint64_t, std::string> tickets_;  // waiting ticket -> job
  std::map<uint64_t, Session> sessions_;
  absl::Duration next_fit_check_ = absl::InfiniteDuration();
  struct CachedProblem {
    std::shared_ptr<const v1::Problem> problem;
    uint64_t used = 0;
  };
  std::map<std::string, CachedProblem> problems_;  // by job
  size_t problem_bytes_ = 0;

  EngineStats stats_;
  std::map<std::string, int64_t> verdicts_;
  std::map<std::string, std::vector<double>> stages_;

  std::unique_ptr<Executor> executor_;  // last: its threads post messages
};

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

// ---------------------------------------------------------------------------------------------------- jobs

absl::StatusOr<Job*> EngineImpl::FindJob(const std::string& id) {
  auto it = jobs_.lower_bound(id);
  if (it != jobs_.end() && it->first == id) {
    if (it->second->stored) return it->second.get();
  } else if (id.size() >= 3 && it != jobs_.end() && absl::StartsWith(it->first, id)) {
    auto next = std::next(it);
    if (next != jobs_.end() && absl::StartsWith(next->first, id)) {
      return absl::InvalidArgumentError(
          absl::StrCat("several jobs start with '", id, "', such as ", it->first, " and ", next->first));
    }
    if (it->second->stored) return it->second.get();
  }
  return absl::NotFoundError(absl::StrCat("there is no job '", Utf8Prefix(id, 64), "'",
                                          id.size() < 3 ? " (a prefix needs at least 3 characters)" : "",
                                          "; `grove jobs` lists them"));
}

absl::Status EngineImpl::LoadTree(Job& job) {
  job.used = ++uses_;
  if (job.tree != nullptr) return absl::OkStatus();
  auto tree = std::make_unique<JobTree>(job.id, deps_.make_policy);
  absl::Status folded;
  std::vector<char> block(64 << 10);
  google::protobuf::ArenaOptions arena_options;
  arena_options.initial_block = block.data();
  arena_options.initial_block_size = block.size();
  google::protobuf::Arena arena(arena_options);
  int since_reset = 0;
  GROVE_RETURN_IF_ERROR(store_.ReadEvents(job.id, 0, 0, [&](uint64_t seq, absl::string_view payload) {
    auto* event = google::protobuf::Arena::CreateMessage<v1::Event>(&arena);
    if (!event->ParseFromArray(payload.data(), static_cast<int>(payload.size()))) {
      folded = absl::DataLossError(absl::StrCat("event ", seq, " of job ", job.id, " cannot be understood"));
      return false;
    }
    event->set_seq(seq);
    folded = tree->Apply(*event);
    if (++since_reset == 16) {
      arena.Reset();
      since_reset = 0;
    }
    return folded.ok();
  }));
  GROVE_RETURN_IF_ERROR(folded);
  if (tree->last_seq() == 0) {
    return absl::DataLossError(absl::StrCat("job ", job.id, " has no events; the journal is damaged"));
  }
  job.tree = std::move(tree);
  if (job.tree->ended()) loaded_.insert(&job);
  return absl::OkStatus();
}

void EngineImpl::ForgetTrees() {
  if (loaded_.size() <= kLoadedTrees || !dirty_.empty()) return;
  std::vector<Job*> loaded;
  for (Job* job : loaded_) {
    if (job->tree != nullptr && job->tree->ended()) loaded.push_back(job);
  }
  std::sort(loaded.begin(), loaded.end(), [](const Job* a, const Job* b) { return a->used > b->used; });
  while (loaded.size() > kLoadedTrees) {
    loaded.back()->tree.reset();
    loaded.pop_back();
  }
  loaded_ = absl::flat_hash_set<Job*>(loaded.begin(), loaded.end());
}

absl::Status EngineImpl::Restore() {
  now_ = clock_.Monotonic();
  GROVE_ASSIGN_OR_RETURN(committed_seq_, store_.LastSeq());
  next_seq_ = committed_seq_ + 1;
  GROVE_ASSIGN_OR_RETURN(const std::vector<store::BankRow> bank_rows, store_.ReadBank());
  GROVE_RETURN_IF_ERROR(bank_.Load(bank_rows));
  GROVE_ASSIGN_OR_RETURN(std::vector<store::JobRow> rows, store_.ReadJobs());
  for (store::JobRow& row : rows) {
    auto job = std::make_unique<Job>();
    job->id = row.id;
    job->key = row.idempotency_key;
    job->created = row.created_unix_nanos;
    job->stored = true;
    keys_[job->key] = job->id;
    order_.push_back(job.get());
    Job* raw = jobs_.emplace(job->id, std::move(job)).first->second.get();
    if (row.ended) {
      v1::Job summary;
      if (!summary.ParseFromString(row.summary)) {
        return absl::DataLossError(absl::StrCat("the summary of job ", row.id, " cannot be understood"));
      }
      raw->summary = std::move(row.summary);
      raw->state = summary.state();
      raw->last_seq = summary.last_seq();
      continue;
    }
    GROVE_RETURN_IF_ERROR(LoadTree(*raw));
    RefreshView(*raw);
    live_[raw->id] = raw;
    open_kernels_ += raw->tree->open_kernels();
  }
  std::vector<Job*> live;
  for (const auto& [id, job] : live_) live.push_back(job);
  for (Job* job : live) BeginRun(*job);
  changed_ = true;
  Advance();
  Commit();
  return absl::OkStatus();
}

// Puts a job that has not ended to work: after its submission, a restart or ResumeJob.
void EngineImpl::BeginRun(Job& job) {
  live_[job.id] = &job;
  job.duplicates.clear();
  JobTree& tree = *job.tree;
  job.device = tree.options().device();
  // A job that was paused for want of a worker stays so until one comes.
  job.unfit = tree.state() == v1::JOB_STATE_PAUSED;
  job.unfit_since = job.unfit ? now_ : absl::InfiniteDuration();
  if (tree.is_search()) {
    auto search = std::make_unique<Search>();
    search->number = next_search_++;
    const double seconds = tree.spec().search().policy().max_seconds();
    if (seconds > 0) {
      const int64_t used = absl::ToUnixNanos(clock_.Now()) - tree.started_unix_nanos();
      search->deadline = now_ + absl::Seconds(seconds) - absl::Nanoseconds(used);
    }
    v1::JobSpec whole;
    absl::StatusOr<std::string> text = ReadBlob(tree.spec_sha256());
    if (!text.ok() || !whole.ParseFromString(*text)) {
      return EndJob(job, v1::JOB_STATE_FAILED,
                    text.ok() ? "its specification cannot be understood" : std::string(text.status().message()));
    }
    auto generator = deps_.make_generator(whole.search().generator());
    if (!generator.ok()) {
      return EndJob(job, v1::JOB_STATE_FAILED, absl::StrCat("generator: ", generator.status().message()));
    }
    search->generator = *std::move(generator);
    job.search = std::move(search);
    if (tree.description().has_value()) {
      if (job.device == v1::DEVICE_KIND_UNSPECIFIED) job.device = tree.description()->device().kind();
    } else {
      scheduler::Work work;
      work.id = DescribeId(job);
      work.job = job.id;
      work.device = job.device;
      work.attempts = tree.describe().attempt;
      work.attempts_base = tree.describe().attempt_base;
      work.last_worker = tree.describe().worker;
      work.reasons = tree.describe().reasons;
      if (tree.describe().leased) {
        const std::string worker = work.last_worker;
        scheduler_.AddLeased(std::move(work), worker, now_);
      } else {
        scheduler_.Add(std::move(work), now_);
      }
    }
  } else if (job.device == v1::DEVICE_KIND_UNSPECIFIED && !tree.kernels().empty()) {
    job.device = DeviceOfFormat(tree.kernels()[0].format);
    for (const KernelRecord& kernel : tree.kernels()) {
      if (DeviceOfFormat(kernel.format) != job.device) job.device = v1::DEVICE_KIND_UNSPECIFIED;
    }
  }
  // Leases of the journal first: work that a duplicate or the policy asks for again is then here already.
  for (int k = 0; k < static_cast<int>(tree.kernels().size()); ++k) {
    if (tree.kernels()[k].leased) AddKernelWork(job, k);
  }
  if (!tree.is_search()) {
    for (int k = 0; k < static_cast<int>(tree.kernels().size()); ++k) Evaluate(job, k);
  }
}

void EngineImpl::EndJob(Job& job, v1::JobState state, const std::string& reason) {
  const int open = job.tree->open_kernels();
  Emit(job, StateEvent(state, reason));
  open_kernels_ -= open;
  for (const scheduler::Held& held : scheduler_.RemoveJob(job.id)) {
    Revoke(held.session, held.lease, absl::StrCat("job ", job.id, " has ended"));
  }
  if (job.search != nullptr) job.search->generator->Cancel();
  job.search.reset();
  job.duplicates.clear();
  job.unfit = false;
  job.unfit_since = absl::InfiniteDuration();
  job.used = ++uses_;
  loaded_.insert(&job);
  live_.erase(job.id);
  if (auto it = problems_.find(job.id); it != problems_.end()) {
    problem_bytes_ -= it->second.problem->source().size();
    problems_.erase(it);
  }
  LogInfo("engine", "job ", job.id, " ", LowerJobState(state), reason.empty() ? "" : ": ", reason);
}

v1::Job EngineImpl::View(const Job& job) const {
  v1::Job view;
  view.ParseFromString(job.summary);
  return view;
}

void EngineImpl::DoSubmit(const v1::SubmitJobRequest& request, Reply<v1::SubmitJobResponse> reply) {
  const auto answer = [this](Job* job, bool existed) {
    return [this, job, existed]() -> absl::StatusOr<v1::SubmitJobResponse> {
      v1::SubmitJobResponse response;
      *response.mutable_job() = View(*job);
      response.set_existed(existed);
      return response;
    };
  };
  if (auto known = keys_.find(request.idempotency_key()); known != keys_.end()) {
    return AfterCommit<v1::SubmitJobResponse>(reply, answer(jobs_.at(known->second).get(), true));
  }
  if (draining_) {
    return reply(absl::UnavailableError("the coordinator is draining and takes no new jobs; submit later"));
  }
  if (absl::Status status = ValidateSubmit(request, deps_.validate_policy); !status.ok()) return reply(status);
  v1::JobSpec spec = request.spec();
  if (static_cast<int>(live_.size()) >= kMaxLiveJobs ||
      open_kernels_ + spec.eval().candidates_size() > kMaxOpenKernels) {
    return reply(absl::ResourceExhaustedError(
        absl::StrCat(live_.size(), " jobs with ", open_kernels_, " evaluations wait already; submit again later")));
  }
  std::vector<v1::Candidate> candidates;
  if (spec.has_search()) {
    auto generator = deps_.make_generator(spec.search().generator());
    if (!generator.ok()) return reply(generator.status());
    *spec.mutable_search()->mutable_policy() = deps_.with_defaults(spec.search().policy());
  } else {
    for (v1::Candidate& candidate : *spec.mutable_eval()->mutable_candidates()) {
      candidates.push_back(std::move(candidate));
    }
    spec.mutable_eval()->clear_candidates();
  }
  v1::Problem* problem =
      spec.has_search() ? spec.mutable_search()->mutable_problem() : spec.mutable_eval()->mutable_problem();
  if (spec.name().empty()) spec.set_name(problem->name());

  auto owned = std::make_unique<Job>();
  Job& job = *owned;
  do {
    job.id = RandomId("j-", 8);
  } while (jobs_.contains(job.id));
  job.key = request.idempotency_key();
  job.created = absl::ToUnixNanos(clock_.Now());
  job.tree = std::make_unique<JobTree>(job.id, deps_.make_policy);
  jobs_[job.id] = std::move(owned);
  order_.push_back(&job);
  keys_[job.key] = job.id;

  v1::Event event;
  v1::JobCreated* created = event.mutable_job_created();
  created->set_idempotency_key(job.key);
  created->set_spec_sha256(PutBlob(spec.SerializeAsString()));
  problem->clear_source();
  if (spec.has_search()) spec.mutable_search()->mutable_generator()->clear_recording();
  *created->mutable_spec() = spec;
  Emit(job, std::move(event));

  for (v1::Candidate& candidate : candidates) {
    v1::Event written;
    v1::KernelNode* kernel = written.mutable_kernel_written()->mutable_kernel();
    const int index = static_cast<int>(job.tree->kernels().size());
    kernel->set_id(job.tree->KernelId(index));
    kernel->set_state(v1::NODE_STATE_OPEN);
    kernel->set_normalised_sha256(NormalisedSha256(candidate));
    if (const int same = job.tree->FindNormalised(kernel->normalised_sha256()); same >= 0) {
      kernel->set_duplicate_of(job.tree->KernelId(same));
    }
    kernel->set_source_sha256(PutBlob(std::move(*candidate.mutable_source())));
    candidate.clear_source();
    *kernel->mutable_candidate() = std::move(candidate);
    Emit(job, std::move(written));
  }
  BeginRun(job);
  AfterCommit<v1::SubmitJobResponse>(std::move(reply), answer(&job, false));
}

absl::StatusOr<v1::Job> EngineImpl::DoGetJob(const std::string& id) {
  GROVE_ASSIGN_OR_RETURN(Job * job, FindJob(id));
  v1::Job view = View(*job);
  std::string sha256;
  if (job->tree != nullptr) {
    sha256 = job->tree->spec_sha256();
  } else {
    // The first event names the blob; folding the whole tree for it would be a waste.
    absl::Status parsed;
    GROVE_RETURN_IF_ERROR(store_.ReadEvents(job->id, 0, 1, [&](uint64_t, absl::string_view payload) {
      v1::Event event;
      if (event.ParseFromArray(payload.data(), static_cast<int>(payload.size()))) {
        sha256 = event.job_created().spec_sha256();
      }
      return false;
    }));
  }
  GROVE_ASSIGN_OR_RETURN(const std::string text, ReadBlob(sha256));
  if (!view.mutable_spec()->ParseFromString(text)) {
    return absl::DataLossError(absl::StrCat("the specification of job ", job->id, " cannot be understood"));
  }
  return view;
}

v1::ListJobsResponse EngineImpl::DoListJobs(const v1::ListJobsRequest& request) {
  v1::ListJobsResponse response;
  const int limit = request.limit() <= 0 ? 50 : std::min(request.limit(), 1000);
  for (auto it = order_.rbegin(); it != order_.rend() && response.jobs_size() < limit; ++it) {
    const Job& job = **it;
    if (!job.stored) continue;
    if (request.state() != v1::JOB_STATE_UNSPECIFIED && job.state != request.state()) continue;
    *response.add_jobs() = View(job);
  }
  return response;
}

void EngineImpl::DoCancel(const v1::CancelJobRequest& request, Reply<v1::Job> reply) {
  absl::StatusOr<Job*> found = FindJob(request.id());
  if (!found.ok()) return reply(found.status());
  Job* job = *found;
  if (!job->live()) {
    if (job->state == v1::JOB_STATE_CANCELLED) return reply(View(*job));
    return reply(absl::FailedPreconditionError(
        absl::StrCat("job ", job->id, " has ended already (", LowerJobState(job->state), ")")));
  }
  EndJob(*job, v1::JOB_STATE_CANCELLED, request.reason());
  AfterCommit<v1::Job>(std::move(reply), [this, job]() -> absl::StatusOr<v1::Job> { return View(*job); });
}

void EngineImpl::DoResume(const v1::ResumeJobRequest& request, Reply<v1::Job> reply) {
  absl::StatusOr<Job*> found = FindJob(request.id());
  if (!found.ok()) return reply(found.status());
  Job* job = *found;
  if (request.extra_rounds() < 0 || request.extra_evaluations() < 0 || request.extra_rounds() > 1000 ||
      request.extra_evaluations() > 1'000'000) {
    return reply(
        absl::InvalidArgumentError("extra_rounds must be between 0 and 1000, extra_evaluations between 0 and 1000000"));
  }
  const bool more = request.extra_rounds() > 0 || request.extra_evaluations() > 0;
  if (absl::Status status = LoadTree(*job); !status.ok()) return reply(status);
  if (more && !job->tree->is_search()) {
    return reply(absl::InvalidArgumentError(
        absl::StrCat("job ", job->id, " evaluates given candidates; only a search has rounds to add")));
  }
  v1::Event event = StateEvent(v1::JOB_STATE_RUNNING, "");
  event.mutable_job_state()->set_extra_rounds(request.extra_rounds());
  event.mutable_job_state()->set_extra_evaluations(request.extra_evaluations());
  const auto answer = [this, job]() -> absl::StatusOr<v1::Job> { return View(*job); };
  if (job->live()) {
    if (job->search != nullptr) {
      job->search->retry_at = now_;  // an outage is tried again at once
      if (job->search->outages > 1) job->search->outages = 1;
    }
    if (more) {
      event.mutable_job_state()->set_state(job->tree->state());
      event.mutable_job_state()->set_reason(job->tree->state_reason());
      Emit(*job, std::move(event));
    }
    return AfterCommit<v1::Job>(std::move(reply), answer);
  }
  if (draining_) {
    return reply(absl::UnavailableError("the coordinator is draining and takes no more work; resume later"));
  }
  const JobTree& tree = *job->tree;
  const bool unfinished = tree.is_search() ? !tree.policy()->Finished() : tree.open_kernels() > 0;
  if (!more && !unfinished) {
    return reply(absl::FailedPreconditionError(
        tree.is_search() ? absl::StrCat("search ", job->id,
                                        " has used its budget: say how many extra rounds or "
                                        "evaluations it gets")
                         : absl::StrCat("every candidate of job ", job->id, " has its verdict")));
  }
  // What the policy gave out before the job ended is forgotten with it; a policy told the journal gives it out again.
  job->tree.reset();
  if (absl::Status status = LoadTree(*job); !status.ok()) return reply(status);
  open_kernels_ += job->tree->open_kernels();
  Emit(*job, std::move(event));
  BeginRun(*job);
  AfterCommit<v1::Job>(std::move(reply), answer);
}

// ---------------------------------------------------------------------------------------------------- watching

bool EngineImpl::Serve(Job& job, Waiter& waiter) {
  EventBatch batch;
  batch.next_after_seq = waiter.after_seq;
  batch.next_progress = waiter.progress_cursor < 0 ? 0 : static_cast<uint64_t>(waiter.progress_cursor);
  bool broken = false;
  if (job.last_seq > waiter.after_seq) {
    absl::Status status =
        store_.ReadEvents(job.id, waiter.after_seq, waiter.max, [&](uint64_t seq, absl::string_view payload) {
          if (seq > job.last_seq) return false;
          v1::Event& event = batch.events.emplace_back();
          broken = !event.ParseFromArray(payload.data(), static_cast<int>(payload.size()));
          event.set_seq(seq);
          batch.next_after_seq = seq;
          return !broken;
        });
    if (broken) status = absl::DataLossError(absl::StrCat("an event of job ", job.id, " cannot be understood"));
    if (!status.ok()) {
      waiter.reply(status);
      return true;
    }
  }
  if (waiter.progress_cursor >= 0) {
    const uint64_t oldest = job.progress_next - job.progress.size();
    uint64_t at = std::max(batch.next_progress, oldest);
    for (; at < job.progress_next && static_cast<int>(batch.events.size()) < waiter.max; ++at) {
      batch.events.push_back(job.progress[at - oldest]);
    }
    batch.next_progress = std::min(at, job.progress_next);
  }
  batch.ended = IsEnded(job.state) && batch.next_after_seq >= job.last_seq;
  if (batch.events.empty() && !batch.ended) return false;
  waiter.reply(std::move(batch));
  return true;
}

void EngineImpl::DoNextEvents(const std::string& id, Waiter waiter) {
  absl::StatusOr<Job*> job = FindJob(id);
  if (!job.ok()) return waiter.reply(job.status());
  if (Serve(**job, waiter)) return;
  if (waiters_ >= kMaxWaiters) {
    return waiter.reply(absl::ResourceExhaustedError("too many watchers; try again later"));
  }
  ++waiters_;
  tickets_[waiter.ticket] = (*job)->id;
  (*job)->waiters.push_back(std::move(waiter));
}

void EngineImpl::ServeWaiters(Job& job) {
  std::vector<Waiter> waiting;
  waiting.swap(job.waiters);
  for (Waiter& waiter : waiting) {
    if (Serve(job, waiter)) {
      --waiters_;
      tickets_.erase(waiter.ticket);
    } else {
      job.waiters.push_back(std::move(waiter));
    }
  }
}

void EngineImpl::DoCancelWait(uint64_t ticket) {
  auto it = tickets_.find(ticket);
  if (it == tickets_.end()) return;
  std::vector<Waiter>& waiters = jobs_.at(it->second)->waiters;
  tickets_.erase(it);
  auto waiter = std::find_if(waiters.begin(), waiters.end(), [&](const Waiter& one) { return one.ticket == ticket; });
  if (waiter == waiters.end()) return;
  Reply<EventBatch> reply = std::move(waiter->reply);
  waiters.erase(waiter);
  --waiters_;
  reply(absl::CancelledError("the wait was cancelled"));
}

// ---------------------------------------------------------------------------------------------------- nodes

v1::IdeaNode EngineImpl::IdeaView(const Job& job, int index) const {
  const JobTree& tree = *job.tree;
  v1::IdeaNode idea = tree.ideas()[index];
  if (tree.policy() != nullptr) {
    idea.set_state(tree.policy()->IdeaState(idea.id()));
    idea.set_credit(tree.policy()->IdeaCredit(idea.id()));
  }
  if (tree.ended() && idea.state() == v1::NODE_STATE_OPEN) idea.set_state(v1::NODE_STATE_ABANDONED);
  return idea;
}

// `whole`: with source and the whole result, uncommitted events included (for generators); else as committed.
absl::StatusOr<v1::KernelNode> EngineImpl::KernelView(const Job& job, int index, bool whole) {
  const JobTree& tree = *job.tree;
  const KernelRecord& record = tree.kernels()[index];
  GROVE_ASSIGN_OR_RETURN(v1::Event written, ReadEvent(record.written_seq));
  v1::KernelNode kernel = std::move(*written.mutable_kernel_written()->mutable_kernel());
  kernel.set_attempt(record.attempt);
  kernel.set_survivor(record.survivor);
  kernel.set_explored(record.explored);
  kernel.set_state(tree.ended() ? v1::NODE_STATE_ABANDONED : v1::NODE_STATE_OPEN);
  if (record.finished_seq != 0 && (whole || record.finished_seq <= committed_seq_)) {
    GROVE_ASSIGN_OR_RETURN(v1::Event finished, ReadEvent(record.finished_seq));
    *kernel.mutable_result() = std::move(*finished.mutable_evaluation_finished()->mutable_result());
    kernel.set_result_sha256(finished.evaluation_finished().result_sha256());
    kernel.set_state(v1::NODE_STATE_DONE);
  }
  if (!whole) return kernel;
  GROVE_ASSIGN_OR_RETURN(*kernel.mutable_candidate()->mutable_source(), ReadBlob(kernel.source_sha256()));
  if (!kernel.result_sha256().empty()) {
    GROVE_ASSIGN_OR_RETURN(const std::string text, ReadBlob(kernel.result_sha256()));
    v1::EvaluationResult result;
    if (!result.ParseFromString(text)) {
      return absl::DataLossError(absl::StrCat("the result of ", kernel.id(), " cannot be understood"));
    }
    // The attempt is this kernel's own even where the result is shared with an equal one.
    result.set_attempt(kernel.result().attempt());
    *kernel.mutable_result() = std::move(result);
  }
  return kernel;
}

absl::StatusOr<std::vector<v1::TreeNode>> EngineImpl::DoGetTree(const std::string& id, int64_t offset, int max) {
  GROVE_ASSIGN_OR_RETURN(Job * job, FindJob(id));
  GROVE_RETURN_IF_ERROR(LoadTree(*job));
  const std::vector<int32_t>& order = job->tree->order();
  std::vector<v1::TreeNode> nodes;
  const int64_t end = std::min<int64_t>(static_cast<int64_t>(order.size()), offset + std::clamp(max, 1, 10'000));
  for (int64_t at = std::max<int64_t>(offset, 0); at < end; ++at) {
    if (order[at] < 0) {
      const int idea = -1 - order[at];
      if (job->tree->idea_seq(idea) > committed_seq_) break;
      *nodes.emplace_back().mutable_idea() = IdeaView(*job, idea);
    } else {
      if (job->tree->kernels()[order[at]].written_seq > committed_seq_) break;
      GROVE_ASSIGN_OR_RETURN(v1::KernelNode kernel, KernelView(*job, order[at], /*whole=*/false));
      if (kernel.result().has_build()) kernel.mutable_result()->mutable_build()->clear_log();
      *nodes.emplace_back().mutable_kernel() = std::move(kernel);
    }
  }
  return nodes;
}

absl::StatusOr<v1::TreeNode> EngineImpl::DoGetNode(const std::string& id) {
  const size_t slash = id.find('/');
  if (slash == std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", Utf8Prefix(id, 64), "' is no node: a node is named like j-2345abcd/k7 or j-2345abcd/i3"));
  }
  GROVE_ASSIGN_OR_RETURN(Job * job, FindJob(id.substr(0, slash)));
  GROVE_RETURN_IF_ERROR(LoadTree(*job));
  const std::string full = absl::StrCat(job->id, id.substr(slash));
  v1::TreeNode node;
  if (const int idea = job->tree->IdeaIndex(full); idea >= 0 && job->tree->idea_seq(idea) <= committed_seq_) {
    *node.mutable_idea() = IdeaView(*job, idea);
    return node;
  }
  const int kernel = job->tree->KernelIndex(full);
  if (kernel < 0 || job->tree->kernels()[kernel].written_seq > committed_seq_) {
    return absl::NotFoundError(absl::StrCat("job ", job->id, " has no node ", Utf8Prefix(id.substr(slash + 1), 64),
                                            "; `grove tree ", job->id, "` shows what there is"));
  }
  if (job->tree->kernels()[kernel].finished_seq > committed_seq_) {
    // Its verdict is not durable yet: the kernel as it stands in the journal.
    GROVE_ASSIGN_OR_RETURN(*node.mutable_kernel(), KernelView(*job, kernel, /*whole=*/false));
    GROVE_ASSIGN_OR_RETURN(*node.mutable_kernel()->mutable_candidate()->mutable_source(),
                           ReadBlob(node.kernel().source_sha256()));
    return node;
  }
  GROVE_ASSIGN_OR_RETURN(*node.mutable_kernel(), KernelView(*job, kernel, /*whole=*/true));
  return node;
}

absl::StatusOr<std::shared_ptr<const v1::Problem>> EngineImpl::ProblemOf(const Job& job) {
  auto it = problems_.find(job.id);
  if (it != problems_.end()) {
    it->second.used = ++uses_;
    return it->second.problem;
  }
  GROVE_ASSIGN_OR_RETURN(const std::string text, ReadBlob(job.tree->spec_sha256()));
  v1::JobSpec spec;
  if (!spec.ParseFromString(text)) return absl::DataLossError("a job's specification cannot be understood");
  auto problem = std::make_shared<v1::Problem>(spec.has_search() ? spec.search().problem() : spec.eval().problem());
  problem_bytes_ += problem->source().size();
  problems_[job.id] = {problem, ++uses_};
  while (problem_bytes_ > kProblemCacheBytes && problems_.size() > 1) {
    auto oldest = std::min_element(problems_.begin(), problems_.end(),
                                   [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
    problem_bytes_ -= oldest->second.problem->source().size();
    problems_.erase(oldest);
  }
  return problem;
}

// ---------------------------------------------------------------------------------------------------- evaluations

Job* EngineImpl::JobOfWork(const std::string& work) {
  auto it = jobs_.find(work.substr(0, work.find('/')));
  return it == jobs_.end() || !it->second->live() ? nullptr : it->second.get();
}

void EngineImpl::AddKernelWork(Job& job, int kernel) {
  const LeaseRecord& lease = job.tree->lease(kernel);
  scheduler::Work work;
  work.id = job.tree->KernelId(kernel);
  if (scheduler_.Has(work.id)) return;
  work.job = job.id;
  work.device = job.tree->options().device();
  if (work.device == v1::DEVICE_KIND_UNSPECIFIED) {
    work.device = DeviceOfFormat(job.tree->kernels()[kernel].format);
    if (work.device == v1::DEVICE_KIND_UNSPECIFIED) work.device = job.device;
  }
  work.attempts = lease.attempt;
  work.attempts_base = lease.attempt_base;
  work.last_worker = lease.worker;
  work.reasons = lease.reasons;
  if (lease.leased) {
    scheduler_.AddLeased(std::move(work), lease.worker, now_);
  } else {
    scheduler_.Add(std::move(work), now_);
  }
}

// Sees to it that this kernel gets a verdict: its own, or that of an equal one.
void EngineImpl::Evaluate(Job& job, int kernel) {
  const KernelRecord& record = job.tree->kernels()[kernel];
  if (record.finished_seq != 0) return;
  const int original = record.duplicate_of;
  if (original < 0) return AddKernelWork(job, kernel);
  if (job.tree->kernels()[original].finished_seq != 0) return FinishDuplicate(job, kernel, original);
  std::vector<int>& waiting = job.duplicates[original];
  if (std::find(waiting.begin(), waiting.end(), kernel) == waiting.end()) waiting.push_back(kernel);
  Evaluate(job, original);
}

void EngineImpl::FinishDuplicate(Job& job, int kernel, int original) {
  absl::StatusOr<v1::Event> shared = ReadEvent(job.tree->kernels()[original].finished_seq);
  v1::Event event;
  v1::EvaluationFinished* finished = event.mutable_evaluation_finished();
  if (shared.ok()) {
    *finished = std::move(*shared->mutable_evaluation_finished());
  } else {
    finished->mutable_result()->set_verdict(v1::VERDICT_UNMEASURABLE);
    finished->mutable_result()->set_reason(absl::StrCat("the result of the equal kernel ", job.tree->KernelId(original),
                                                        " cannot be read: ", shared.status().message()));
  }
  finished->set_kernel(job.tree->KernelId(kernel));
  finished->set_attempt(0);  // nothing was run for it
  finished->mutable_result()->set_attempt(0);
  ++verdicts_[LowerVerdict(finished->result().verdict())];
  Emit(job, std::move(event));
}

void EngineImpl::FinishKernel(Job& job, int kernel, int attempt, v1::EvaluationResult whole) {
  whole.set_attempt(attempt);
  LimitWholeResult(&whole);
  v1::Event event;
  v1::EvaluationFinished* finished = event.mutable_evaluation_finished();
  finished->set_kernel(job.tree->KernelId(kernel));
  finished->set_attempt(attempt);
  *finished->mutable_result() = BoundedResult(whole);
  finished->set_result_sha256(PutBlob(whole.SerializeAsString()));
  ++verdicts_[LowerVerdict(whole.verdict())];
  Emit(job, std::move(event));
  auto waiting = job.duplicates.find(kernel);
  if (waiting == job.duplicates.end()) return;
  const std::vector<int> equal = std::move(waiting->second);
  job.duplicates.erase(waiting);
  for (int one : equal) FinishDuplicate(job, one, kernel);
}

void EngineImpl::Lost(const scheduler::Loss& loss) {
  Job* job = JobOfWork(loss.work);
  if (job == nullptr) return;
  ++stats_.requeues_total;
  v1::Event event;
  v1::EvaluationRequeued* requeued = event.mutable_evaluation_requeued();
  requeued->set_kernel(loss.work);
  requeued->set_attempt(loss.attempt);
  requeued->set_reason(Utf8Prefix(loss.reason, 500));
  Emit(*job, std::move(event));
  if (!loss.given_up) return;
  const std::string why = absl::StrCat("given up after ", loss.reasons.size(),
                                       " attempts without a verdict: ", absl::StrJoin(loss.reasons, "; "));
  const int kernel = job->tree->KernelIndex(loss.work);
  if (kernel < 0) {
    EndJob(*job, v1::JOB_STATE_FAILED, absl::StrCat("the problem could not be described; ", why));
    return;
  }
  v1::EvaluationResult result;
  result.set_verdict(v1::VERDICT_UNMEASURABLE);
  result.set_reason(Utf8Prefix(why, 2000));
  FinishKernel(*job, kernel, loss.attempt, std::move(result));
}

void EngineImpl::LeasedEvent(const std::string& work, int attempt, const std::string& worker) {
  Job* job = JobOfWork(work);
  if (job == nullptr) return;
  v1::Event event;
  event.mutable_evaluation_leased()->set_kernel(work);
  event.mutable_evaluation_leased()->set_attempt(attempt);
  event.mutable_evaluation_leased()->set_worker(worker);
  Emit(*job, std::move(event));
}

void EngineImpl::Assign(const scheduler::Grant& grant) {
  Job* job = JobOfWork(grant.work);
  if (job == nullptr) return;  // cannot be: a job that ends leaves the scheduler
  v1::CoordinatorMessage message;
  v1::Assignment* assignment = message.mutable_assignment();
  assignment->mutable_lease()->set_work(grant.work);
  assignment->mutable_lease()->set_attempt(grant.attempt);
  assignment->set_lease_seconds(absl::ToDoubleSeconds(options_.lease));
  LeasedEvent(grant.work, grant.attempt, grant.worker);
  ++stats_.leases_granted_total;
  std::vector<double>& waited = stages_["queue"];
  if (waited.size() < kMaxStageSamples) waited.push_back(absl::ToDoubleSeconds(grant.waited));

  const int kernel = job->tree->KernelIndex(grant.work);
  absl::StatusOr<std::shared_ptr<const v1::Problem>> problem = ProblemOf(*job);
  absl::Status status = problem.status();
  if (status.ok() && kernel < 0) {
    *assignment->mutable_describe()->mutable_problem() = **problem;
    *assignment->mutable_describe()->mutable_options() = job->tree->options();
  } else if (status.ok()) {
    v1::EvaluateWork* work = assignment->mutable_evaluate();
    *work->mutable_problem() = **problem;
    *work->mutable_options() = job->tree->options();
    absl::StatusOr<v1::Event> written = ReadEvent(job->tree->kernels()[kernel].written_seq);
    status = written.status();
    if (status.ok()) {
      *work->mutable_candidate() = std::move(*written->mutable_kernel_written()->mutable_kernel()->mutable_candidate());
      absl::StatusOr<std::string> source = ReadBlob(written->kernel_written().kernel().source_sha256());
      status = source.status();
      if (status.ok()) work->mutable_candidate()->set_source(*std::move(source));
    }
  }
  if (status.ok()) return SendAfterCommit(grant.session, std::move(message));
  // What is to be run cannot be read back: nothing that another attempt would mend.
  LogError("engine", "cannot assign ", grant.work, ": ", status.message());
  if (kernel < 0) return EndJob(*job, v1::JOB_STATE_FAILED, std::string(status.message()));
  scheduler_.Finish(grant.work, "");
  v1::EvaluationResult result;
  result.set_verdict(v1::VERDICT_UNMEASURABLE);
  result.set_reason(absl::StrCat("its source cannot be read back from the coordinator's store: ", status.message()));
  FinishKernel(*job, kernel, grant.attempt, std::move(result));
}

void EngineImpl::Revoke(uint64_t session, const v1::Lease& lease, const std::string& reason) {
  v1::CoordinatorMessage message;
  *message.mutable_revoke()->mutable_lease() = lease;
  message.mutable_revoke()->set_reason(reason);
  SendAfterCommit(session, std::move(message));
}

void EngineImpl::WorkerSaid(uint64_t session, v1::WorkerMessage message) {
  auto shared = std::make_shared<v1::WorkerMessage>(std::move(message));
  switch (shared->body_case()) {
    case v1::WorkerMessage::kHeartbeat:
      // While the store cannot be written leases stand still, and are renewed when it can be again.
      Post({Kind::kRead,
            [this, session, shared] {
              if (!store_error_.ok()) return;
              changed_ = true;
              DoHeartbeat(session, shared->heartbeat());
            },
            nullptr});
      return;
    case v1::WorkerMessage::kProgress:
      Post({Kind::kRead, [this, session, shared] { DoProgress(session, shared->progress()); }, nullptr});
      return;
    case v1::WorkerMessage::kResult:
      Post({Kind::kDefer, [this, session, shared] { DoResult(session, std::move(*shared->mutable_result())); },
            [this, session](absl::Status status) {
              // Too much waits for the store: the worker keeps its result and says it again when it has dialled in
              // anew.
              if (!absl::IsUnavailable(status)) return;  // the loop has ended, and with it all sessions
              auto it = sessions_.find(session);
              if (it != sessions_.end()) it->second.link->Close(std::move(status));
            }});
      return;
    default:
      Post({Kind::kRead,
            [this, session] {
              auto it = sessions_.find(session);
              if (it == sessions_.end()) return;
              it->second.link->Close(absl::InvalidArgumentError(
                  "after its hello a worker says heartbeat, progress or result, and nothing else"));
            },
            nullptr});
  }
}

void EngineImpl::DoHello(uint64_t session, const v1::WorkerHello& hello, const std::shared_ptr<WorkerLink>& link) {
  if (hello.protocol() != 1) {
    return link->Close(absl::FailedPreconditionError(
        absl::StrCat("the worker (version ", hello.version(), ") speaks protocol ", hello.protocol(),
                     ", this coordinator (version ", options_.version, ") protocol 1: install the same version")));
  }
  if (hello.worker_id().empty() || hello.worker_id().size() > 128) {
    return link->Close(absl::InvalidArgumentError("worker_id must have 1 to 128 characters"));
  }
  if (hello.device().kind() != v1::DEVICE_KIND_CPU && hello.device().kind() != v1::DEVICE_KIND_CUDA) {
    return link->Close(absl::InvalidArgumentError("a worker must say what device it has: CPU or CUDA"));
  }
  sessions_[session] = {link};
  scheduler::HelloOutcome outcome = scheduler_.Connect(session, hello, now_);
  if (outcome.replaced_session != 0) {
    auto old = sessions_.find(outcome.replaced_session);
    if (old != sessions_.end()) {
      old->second.link->Close(absl::AbortedError("the worker has opened a newer session"));
      sessions_.erase(old);
    }
  }
  for (const scheduler::Loss& loss : outcome.lost) Lost(loss);
  for (const scheduler::Grant& grant : outcome.taken_up) LeasedEvent(grant.work, grant.attempt, grant.worker);
  v1::CoordinatorMessage message;
  v1::Welcome* welcome = message.mutable_welcome();
  welcome->set_coordinator_version(options_.version);
  welcome->set_heartbeat_seconds(absl::ToDoubleSeconds(options_.heartbeat));
  welcome->set_lease_seconds(absl::ToDoubleSeconds(options_.lease));
  for (const v1::Lease& lease : outcome.revoked) *welcome->add_revoked() = lease;
  SendAfterCommit(session, std::move(message));
  LogInfo("engine", "worker ", hello.name().empty() ? hello.worker_id() : hello.name(),
          " connected: ", DeviceName(hello.device().kind()), ", ", hello.device().name(), ", capacity ",
          hello.capacity());
}

void EngineImpl::DoHeartbeat(uint64_t session, const v1::WorkerHeartbeat& heartbeat) {
  scheduler::HeartbeatOutcome outcome = scheduler_.Heartbeat(session, heartbeat, now_);
  for (const scheduler::Grant& grant : outcome.taken_up) LeasedEvent(grant.work, grant.attempt, grant.worker);
  for (const v1::Lease& lease : outcome.revoked) Revoke(session, lease, "the lease is no longer this worker's");
}

void EngineImpl::DoProgress(uint64_t session, const v1::WorkerProgress& progress) {
  const std::string* worker = scheduler_.WorkerOf(session);
  if (worker == nullptr || !scheduler_.Holds(*worker, progress.lease())) return;
  Job* job = JobOfWork(progress.lease().work());
  if (job == nullptr) return;
  v1::Event event;
  event.set_job(job->id);
  event.set_time_unix_nanos(absl::ToUnixNanos(clock_.Now()));
  event.mutable_progress()->set_kernel(progress.lease().work());
  event.mutable_progress()->set_stage(Utf8Prefix(progress.stage(), 64));
  event.mutable_progress()->set_detail(Utf8Prefix(progress.detail(), 512));
  job->progress.push_back(std::move(event));
  ++job->progress_next;
  if (job->progress.size() > kProgressRing) job->progress.pop_front();
  if (!job->waiters.empty()) ServeWaiters(*job);
}

void EngineImpl::DoResult(uint64_t session, v1::WorkResult result) {
  const std::string* name = scheduler_.WorkerOf(session);
  if (name == nullptr) return;  // a session that was replaced: the worker will say it again
  const std::string worker = *name;
  const v1::Lease lease = result.lease();
  v1::CoordinatorMessage message;
  *message.mutable_ack()->mutable_lease() = lease;
  Job* job = JobOfWork(lease.work());
  const int kernel = job == nullptr ? -1 : job->tree->KernelIndex(lease.work());
  if (job == nullptr || !scheduler_.Holds(worker, lease)) {
    // Told again because the acknowledgement was lost, or of an old token: either way nothing changes.
    const bool stored = kernel >= 0 && job->tree->kernels()[kernel].finished_seq != 0 && lease.attempt() > 0 &&
                        job->tree->kernels()[kernel].finished_attempt == lease.attempt();
    message.mutable_ack()->set_stale(!stored);
    if (!stored) ++stats_.stale_results_total;
    return SendAfterCommit(session, std::move(message));
  }
  SendAfterCommit(session, std::move(message));
  std::string failure = result.infrastructure_failure();
  if (result.outcome_case() == v1::WorkResult::OUTCOME_NOT_SET) failure = "the worker sent a result without an outcome";
  if (result.outcome_case() == v1::WorkResult::kEvaluation &&
      (result.evaluation().verdict() == v1::VERDICT_UNSPECIFIED ||
       !v1::Verdict_IsValid(result.evaluation().verdict()))) {
    failure = "the worker sent a result without a verdict";
  }
  if (result.outcome_case() == v1::WorkResult::kInfrastructureFailure && failure.empty()) failure = "no reason given";
  if ((kernel < 0 && result.outcome_case() == v1::WorkResult::kEvaluation) ||
      (kernel >= 0 && result.outcome_case() == v1::WorkResult::kDescription)) {
    failure = "the worker answered another question than it was asked";
  }
  if (!failure.empty()) {
    LogWarning("engine", lease.work(), " failed on ", worker, " without a verdict: ", failure);
    Lost(scheduler_.Fail(worker, lease, absl::StrCat("worker ", worker, ": ", Utf8Prefix(failure, 300)), now_));
    return;
  }
  scheduler_.Finish(lease.work(), worker);
  if (result.outcome_case() == v1::WorkResult::kProblemError) {
    v1::Event event;
    event.mutable_problem_described()->set_error(Utf8Prefix(result.problem_error(), 16 << 10));
    Emit(*job, std::move(event));
    EndJob(*job, v1::JOB_STATE_FAILED, Utf8Prefix(result.problem_error(), 2000));
    return;
  }
  if (kernel < 0) return Described(*job, std::move(*result.mutable_description()));
  v1::EvaluationResult& evaluation = *result.mutable_evaluation();
  for (const v1::StageTime& stage : evaluation.stages()) {
    // Names come from the worker: few, so that they may be labels.
    if (stages_.size() >= 32 && !stages_.contains(stage.stage())) continue;
    std::vector<double>& seconds = stages_[stage.stage().substr(0, 32)];
    if (seconds.size() < kMaxStageSamples) seconds.push_back(stage.seconds());
  }
  if (evaluation.has_build()) {
    ++(evaluation.build().cached() ? stats_.build_cache_hits_total : stats_.build_cache_misses_total);
  }
  evaluation.set_worker(worker);
  FinishKernel(*job, kernel, lease.attempt(), std::move(evaluation));
}

void EngineImpl::Described(Job& job, v1::ProblemDescription description) {
  if (description.ByteSizeLong() > kMaxDescriptionBytes) {
    description.clear_graph();
    description.clear_graph_outputs();
    description.set_graph_error("the graph is too large to be kept");
  }
  v1::Event event;
  if (job.device == v1::DEVICE_KIND_UNSPECIFIED) job.device = description.device().kind();
  *event.mutable_problem_described()->mutable_description() = std::move(description);
  Emit(job, std::move(event));
}

v1::ListWorkersResponse EngineImpl::DoListWorkers() {
  v1::ListWorkersResponse response;
  for (const scheduler::WorkerView& view : scheduler_.Workers()) {
    v1::WorkerStatus* worker = response.add_workers();
    worker->set_worker_id(view.id);
    worker->set_name(view.hello.name());
    worker->set_version(view.hello.version());
    *worker->mutable_device() = view.hello.device();
    worker->set_capacity(view.hello.capacity());
    for (const v1::Lease& lease : view.running) *worker->add_running() = lease;
    worker->set_slot_state(view.slot_state);
    worker->set_draining(view.draining);
    worker->set_connected(view.session != 0);
    worker->set_last_heartbeat_seconds(absl::ToDoubleSeconds(clock_.Monotonic() - view.last_heard));
    worker->set_evaluations(view.finished);
    *worker->mutable_sandbox_layers() = view.hello.sandbox_layers();
  }
  return response;
}

EngineStats EngineImpl::DoStats() {
  EngineStats stats = stats_;
  stats.queue_depth = scheduler_.queued();
  stats.queue_oldest_age_seconds = absl::ToDoubleSeconds(scheduler_.OldestQueuedAge(clock_.Monotonic()));
  stats.leases_active = scheduler_.leased();
  for (const auto& [name, count] : verdicts_) stats.verdicts_total.emplace_back(name, count);
  std::map<std::string, int64_t> workers = {
      {"idle", 0}, {"checking", 0}, {"timing", 0}, {"quarantined", 0}, {"disconnected", 0}};
  for (const scheduler::WorkerView& view : scheduler_.Workers()) {
    auto it = workers.find(view.session == 0 ? "disconnected" : view.slot_state);
    ++(it == workers.end() ? workers["idle"] : it->second);
  }
  for (const auto& [name, count] : workers) stats.workers_by_state.emplace_back(name, count);
  std::map<std::string, int64_t> jobs;
  for (int state = v1::JOB_STATE_RUNNING; state <= v1::JOB_STATE_FAILED; ++state) {
    jobs[LowerJobState(static_cast<v1::JobState>(state))] = 0;
  }
  for (const Job* job : order_) {
    if (job->stored) ++jobs[LowerJobState(job->state)];
  }
  for (const auto& [name, count] : jobs) stats.jobs_by_state.emplace_back(name, count);
  for (auto& [name, seconds] : stages_) stats.stage_seconds.emplace_back(name, std::move(seconds));
  stages_.clear();
  stats.store_bytes = store_.SizeBytes();
  return stats;
}

// ---------------------------------------------------------------------------------------------------- searching

// Asks the policy for as much as is useful now, and sees whether the job has come to its end.
void EngineImpl::Pump(Job& job) {
  JobTree& tree = *job.tree;
  if (!tree.is_search()) {
    if (tree.open_kernels() == 0) EndJob(job, v1::JOB_STATE_DONE, "");
    return;
  }
  Search& search = *job.search;
  if (!tree.description().has_value()) return;
  if (!search.supported) return;
  // Ready evaluations for every slot and a few more; requests for as many generator calls as may be in flight.
  const int ready = scheduler_.FittingCapacity(job.device, now_) + kRunAhead;
  bool nothing = false;
  while (job.live() && scheduler_.QueuedOf(job.id) < ready &&
         static_cast<int>(search.held.size()) < std::max(1, options_.generator_threads)) {
    std::vector<search::Action> actions = tree.policy()->Ask(1);
    if (actions.empty()) {
      nothing = true;
      break;
    }
    for (search::Action& action : actions) Act(job, std::move(action));
  }
  if (!job.live() || !nothing || !search.held.empty() || search.in_flight > 0) return;
  if (tree.policy()->Finished()) {
    if (tree.kernels().empty()) {
      return EndJob(
          job, v1::JOB_STATE_FAILED,
          absl::StrCat("the generator wrote no kernel", search.last_error.empty() ? "" : ": ", search.last_error));
    }
    KeepBest(job);
    return EndJob(job, v1::JOB_STATE_DONE, "");
  }
  if (scheduler_.QueuedOf(job.id) == 0 && scheduler_.LeasedOf(job.id) == 0) {
    EndJob(job, v1::JOB_STATE_FAILED, "the policy waits for something that nobody does: a bug in the policy");
  }
}

bool EngineImpl::Act(Job& job, search::Action action) {
  if (auto* evaluate = std::get_if<search::EvaluateKernel>(&action)) {
    const int kernel = job.tree->KernelIndex(evaluate->kernel);
    if (kernel >= 0) Evaluate(job, kernel);
  } else if (auto* select = std::get_if<search::SelectKernel>(&action)) {
    v1::Event event;
    event.mutable_kernel_selected()->set_kernel(select->kernel);
    event.mutable_kernel_selected()->set_round(select->round);
    event.mutable_kernel_selected()->set_explored(select->explored);
    Emit(job, std::move(event));
  } else {
    job.search->held.push_back(std::move(action));
  }
  return true;
}

bool EngineImpl::CanDispatch(const Job& job) const {
  if (options_.hold_generators) return false;
  if (job.search == nullptr || !job.live() || !job.tree->description().has_value()) return false;
  const Search& search = *job.search;
  // During an outage one call at a time probes whether it is over.
  if (search.outages > 0 && (search.retry_at > now_ || search.in_flight > 0)) return false;
  return search.supported ? !search.held.empty() : !search.support_asked;
}

// Threads go round the searches, so that one with many slow calls does not hold up the others.
void EngineImpl::DispatchGenerators() {
  while (generators_busy_ < std::max(1, options_.generator_threads)) {
    auto it = live_.upper_bound(generator_cursor_);
    Job* next = nullptr;
    for (size_t i = 0; i < live_.size() && next == nullptr; ++i, ++it) {
      if (it == live_.end()) it = live_.begin();
      if (CanDispatch(*it->second)) next = it->second;
    }
    if (next == nullptr) return;
    generator_cursor_ = next->id;
    Dispatch(*next);
  }
}

absl::StatusOr<generate::Context> EngineImpl::ContextOf(Job& job) {
  const JobTree& tree = *job.tree;
  generate::Context context;
  GROVE_ASSIGN_OR_RETURN(const std::shared_ptr<const v1::Problem> problem, ProblemOf(job));
  context.problem = *problem;
  context.description = *tree.description();
  context.device = tree.description()->device();
  if (context.device.kind() == v1::DEVICE_KIND_UNSPECIFIED) context.device.set_kind(job.device);
  context.options = tree.options();
  context.seed = tree.spec().search().policy().seed();
  const size_t ideas = tree.ideas().size();
  for (size_t i = ideas > kMaxTriedIdeas ? ideas - kMaxTriedIdeas : 0; i < ideas; ++i) {
    context.tried.push_back(IdeaView(job, static_cast<int>(i)));
  }
  if (!tree.spec().search().no_bank() && deps_.recognise_operation) {
    const std::string operation = deps_.recognise_operation(*tree.description());
    for (const bank::Entry* entry : bank_.Top(operation, context.device.kind(), context.device.arch(), 3)) {
      absl::StatusOr<v1::BankEntry> whole = WithSource(*entry);
      if (whole.ok()) context.bank.push_back(*std::move(whole));
    }
  }
  return context;
}

void EngineImpl::Dispatch(Job& job) {
  Search& search = *job.search;
  const auto made = [&]() -> absl::StatusOr<std::function<void()>> {
    GROVE_ASSIGN_OR_RETURN(generate::Context context, ContextOf(job));
    const std::shared_ptr<generate::Generator> generator = search.generator;
    const std::string id = job.id;
    const uint64_t number = search.number;
    auto shared = std::make_shared<generate::Context>(std::move(context));
    if (!search.supported) {
      return std::function<void()>([this, id, number, generator, shared] {
        absl::Status status = generator->Supports(*shared);
        Post({Kind::kDefer, [this, id, number, status] { SupportAnswered(id, number, status); }, nullptr});
      });
    }
    const auto whole = [&](const std::string& node) -> absl::StatusOr<v1::KernelNode> {
      const int kernel = node.empty() ? -1 : job.tree->KernelIndex(node);
      if (kernel < 0) return v1::KernelNode();
      GROVE_ASSIGN_OR_RETURN(v1::KernelNode found, KernelView(job, kernel, /*whole=*/true));
      LimitForPrompt(found.mutable_result());
      return found;
    };
    const search::Action action = search.held.front();
    if (const auto* propose = std::get_if<search::ProposeIdeas>(&action)) {
      auto request = std::make_shared<generate::IdeaRequest>();
      request->request = propose->request;
      request->count = propose->count;
      GROVE_ASSIGN_OR_RETURN(request->parent, whole(propose->parent));
      return std::function<void()>([this, id, number, generator, shared, request, propose = *propose] {
        auto result = std::make_shared<IdeasResult>(generator->ProposeIdeas(*shared, *request));
        Post({Kind::kDefer, [this, id, number, propose, result] { Answered(id, number, propose, std::move(*result)); },
              nullptr});
      });
    }
    const auto& write = std::get<search::WriteKernel>(action);
    auto request = std::make_shared<generate::KernelRequest>();
    request->request = write.request;
    request->variant = write.variant;
    request->repair = write.repair;
    const int idea = job.tree->IdeaIndex(write.idea);
    if (idea < 0) return absl::InternalError(absl::StrCat("the policy names an unknown idea ", write.idea));
    request->idea = IdeaView(job, idea);
    GROVE_ASSIGN_OR_RETURN(request->parent, whole(request->idea.parent()));
    GROVE_ASSIGN_OR_RETURN(request->failed, whole(write.repaired_from));
    for (int sibling : job.tree->kernels_of_idea(idea)) {
      if (request->siblings.size() >= kMaxSiblings) break;
      GROVE_ASSIGN_OR_RETURN(v1::KernelNode found, whole(job.tree->KernelId(sibling)));
      request->siblings.push_back(std::move(found));
    }
    return std::function<void()>([this, id, number, generator, shared, request, write = write] {
      auto result = std::make_shared<KernelResult>(generator->WriteKernel(*shared, *request));
      Post({Kind::kDefer, [this, id, number, write, result] { Answered(id, number, write, std::move(*result)); },
            nullptr});
    });
  };
  absl::StatusOr<std::function<void()>> call = made();
  if (!call.ok()) {
    EndJob(job, v1::JOB_STATE_FAILED, absl::StrCat("a generator call cannot be prepared: ", call.status().message()));
    return;
  }
  if (search.supported) {
    search.held.pop_front();
  } else {
    search.support_asked = true;
  }
  ++search.in_flight;
  ++generators_busy_;
  executor_->Submit(*std::move(call));
}

Job* EngineImpl::SearchOf(const std::string& id, uint64_t number) {
  --generators_busy_;
  Job* job = jobs_.at(id).get();
  if (job->search == nullptr || job->search->number != number) return nullptr;
  --job->search->in_flight;
  return job;
}

// True when the call failed because the provider is out: the search waits and asks again.
bool EngineImpl::Outage(Job& job, const absl::Status& status) {
  Search& search = *job.search;
  if (!IsOutage(status)) {
    search.outages = 0;
    search.outage.clear();
    return false;
  }
  ++stats_.model_errors_total;
  // Calls that were in flight together fail together: they are one outage.
  if (search.outages == 0 || search.retry_at <= now_) {
    const int64_t factor = int64_t{1} << std::min(search.outages, 16);
    search.retry_at = now_ + std::min(kOutageMax, kOutageFirst * factor);
    ++search.outages;
  }
  search.outage = Utf8Prefix(status.message(), 500);
  LogWarning("engine", "search ", job.id, ": the generator is out (", search.outage, "), trying again in ",
             absl::FormatDuration(search.retry_at - now_));
  return true;
}

// What a call cost, told of successes and of failures.
void EngineImpl::Usage(Job& job, const std::string& request, const absl::Status& status, const generate::Usage& usage) {
  stats_.model_calls_total += usage.calls;
  stats_.prompt_tokens_total += usage.prompt_tokens;
  stats_.completion_tokens_total += usage.completion_tokens;
  if (usage.calls == 0 && usage.exchange.empty()) return;
  v1::Event event;
  v1::ModelCalled* called = event.mutable_model_called();
  called->set_request(request);
  called->set_model(Utf8Prefix(usage.model, 256));
  called->set_prompt_tokens(usage.prompt_tokens);
  called->set_completion_tokens(usage.completion_tokens);
  called->set_seconds(usage.seconds);
  if (!status.ok()) called->set_error(Utf8Prefix(status.message(), 1000));
  if (!usage.exchange.empty() && static_cast<int64_t>(usage.exchange.size()) <= store::kMaxBlobBytes) {
    called->set_exchange_sha256(PutBlob(usage.exchange));
  }
  Emit(job, std::move(event));
}

void EngineImpl::SupportAnswered(const std::string& id, uint64_t number, absl::Status status) {
  Job* job = SearchOf(id, number);
  if (job == nullptr) return;
  if (Outage(*job, status)) {
    job->search->support_asked = false;
    return;
  }
  if (status.ok()) {
    job->search->supported = true;
    return;
  }
  EndJob(*job, v1::JOB_STATE_FAILED, std::string(status.message()));
}

void EngineImpl::Answered(const std::string& id, uint64_t number, const search::ProposeIdeas& action,
                          IdeasResult result) {
  Job* job = SearchOf(id, number);
  if (job == nullptr) return;
  Usage(*job, action.request, result);
  if (Outage(*job, result.status())) {
    job->search->held.push_front(action);
    return;
  }
  v1::Event event;
  v1::IdeasProposed* proposed = event.mutable_ideas_proposed();
  proposed->set_request(action.request);
  if (result.ok()) {
    for (const v1::IdeaNode& answer : result->ideas) {
      if (proposed->ideas_size() >= std::max(1, action.count)) break;
      v1::IdeaNode* idea = proposed->add_ideas();
      idea->set_id(job->tree->IdeaId(static_cast<int>(job->tree->ideas().size()) + proposed->ideas_size() - 1));
      idea->set_parent(action.parent);
      idea->set_round(action.round);
      idea->set_title(Utf8Prefix(answer.title(), 200));
      idea->set_description(Utf8Prefix(answer.description(), 4000));
      idea->set_category(Utf8Prefix(answer.category(), 40));
      idea->set_predicted_speedup(answer.predicted_speedup());
      idea->set_recipe(Utf8Prefix(answer.recipe(), 64 << 10));
      idea->set_state(v1::NODE_STATE_OPEN);
    }
    if (proposed->ideas_size() == 0) proposed->set_error("the generator had no idea");
  } else {
    ++stats_.model_errors_total;
    proposed->set_error(Utf8Prefix(result.status().message(), 1000));
  }
  if (!proposed->error().empty()) job->search->last_error = proposed->error();
  Emit(*job, std::move(event));
}

void EngineImpl::Answered(const std::string& id, uint64_t number, const search::WriteKernel& action,
                          KernelResult result) {
  Job* job = SearchOf(id, number);
  if (job == nullptr) return;
  Usage(*job, action.request, result);
  if (Outage(*job, result.status())) {
    job->search->held.push_front(action);
    return;
  }
  v1::Event event;
  v1::KernelWritten* written = event.mutable_kernel_written();
  written->set_request(action.request);
  written->set_idea(action.idea);
  absl::Status status = result.status();
  if (result.ok()) {
    status = ValidateCandidate(result->kernel.candidate(), job->device, "the generator's kernel");
  } else {
    ++stats_.model_errors_total;
  }
  if (!status.ok()) {
    written->set_error(Utf8Prefix(status.message(), 1000));
    job->search->last_error = written->error();
    Emit(*job, std::move(event));
    return;
  }
  const v1::IdeaNode& idea = job->tree->ideas()[job->tree->IdeaIndex(action.idea)];
  v1::KernelNode* kernel = written->mutable_kernel();
  kernel->set_id(job->tree->KernelId(static_cast<int>(job->tree->kernels().size())));
  kernel->set_idea(action.idea);
  kernel->set_parent(idea.parent());
  kernel->set_round(idea.round());
  kernel->set_variant(action.variant);
  kernel->set_repair_of_attempt(action.repair);
  kernel->set_repaired_from(action.repaired_from);
  *kernel->mutable_candidate() = std::move(*result->kernel.mutable_candidate());
  kernel->set_recipe(Utf8Prefix(result->kernel.recipe(), 64 << 10));
  kernel->set_notes(Utf8Prefix(result->kernel.notes(), 4000));
  kernel->set_bank_origin(Utf8Prefix(result->kernel.bank_origin(), 64));
  kernel->set_state(v1::NODE_STATE_OPEN);
  kernel->set_normalised_sha256(NormalisedSha256(kernel->candidate()));
  if (const int same = job->tree->FindNormalised(kernel->normalised_sha256()); same >= 0) {
    kernel->set_duplicate_of(job->tree->KernelId(same));
  }
  kernel->set_source_sha256(PutBlob(std::move(*kernel->mutable_candidate()->mutable_source())));
  kernel->mutable_candidate()->clear_source();
  Emit(*job, std::move(event));
}

// Whether the job is held up by something outside, and says so when that changes.
void EngineImpl::CheckPause(Job& job) {
  std::string reason;
  const Search* search = job.search.get();
  if (search != nullptr && search->outages > 0) {
    reason = absl::StrCat("the generator is out: ", search->outage, "; it is tried again by itself");
  }
  const bool waits = scheduler_.QueuedOf(job.id) > 0 && scheduler_.LeasedOf(job.id) == 0 &&
                     scheduler_.FittingCapacity(job.device, now_) == 0;
  if (!waits) {
    job.unfit_since = absl::InfiniteDuration();
    job.unfit = false;
  } else if (job.unfit_since == absl::InfiniteDuration()) {
    job.unfit_since = now_;
  }
  if (waits && !job.unfit) {
    job.unfit = now_ - job.unfit_since >= kUnfitGrace;
    if (!job.unfit) next_fit_check_ = std::min(next_fit_check_, job.unfit_since + kUnfitGrace);
  }
  if (reason.empty() && job.unfit) {
    reason =
        absl::StrCat("no worker with a ", DeviceName(job.device) == std::string("any") ? "" : DeviceName(job.device),
                     " device takes work; start one, or see `grove workers`");
  }
  const bool paused = job.tree->state() == v1::JOB_STATE_PAUSED;
  if (paused == !reason.empty()) return;
  Emit(job, StateEvent(reason.empty() ? v1::JOB_STATE_RUNNING : v1::JOB_STATE_PAUSED, reason));
}

// ---------------------------------------------------------------------------------------------------- bank

absl::StatusOr<v1::BankEntry> EngineImpl::WithSource(const bank::Entry& entry) {
  v1::BankEntry whole = entry.entry;
  GROVE_ASSIGN_OR_RETURN(*whole.mutable_candidate()->mutable_source(), ReadBlob(entry.source_sha256));
  return whole;
}

namespace {

bank::Entry EntryOf(const v1::KernelNode& kernel, const v1::Job& job, const std::string& operation, int64_t now) {
  bank::Entry made;
  v1::BankEntry& entry = made.entry;
  entry.set_id(RandomId("b-", 8));
  entry.set_operation(operation);
  entry.set_device(kernel.result().device().kind());
  entry.set_arch(kernel.result().device().arch());
  *entry.mutable_candidate() = kernel.candidate();
  entry.mutable_candidate()->clear_source();
  entry.set_recipe(kernel.recipe());
  if (kernel.result().timing().baselines_size() > 0) {
    const v1::BaselineTiming& baseline = kernel.result().timing().baselines(0);
    entry.set_speedup(baseline.speedup());
    entry.set_speedup_low(baseline.speedup_low());
    entry.set_speedup_high(baseline.speedup_high());
  }
  entry.set_problem_name(job.spec().has_search() ? job.spec().search().problem().name()
                                                 : job.spec().eval().problem().name());
  entry.set_problem_sha256(kernel.result().problem_sha256());
  entry.set_origin_job(job.id());
  entry.set_origin_node(kernel.id());
  entry.set_added_unix_nanos(now);
  made.source_sha256 = kernel.source_sha256();
  return made;
}

}  // namespace

// A search that has ended leaves its best kernel in the bank, if it surely gained.
void EngineImpl::KeepBest(Job& job) {
  const v1::Job summary = job.tree->Summary();
  if (summary.spec().search().no_bank() || summary.best_speedup_low() <= 1 || !deps_.recognise_operation ||
      !job.tree->description().has_value()) {
    return;
  }
  const std::string operation = deps_.recognise_operation(*job.tree->description());
  if (operation.empty()) return;
  absl::StatusOr<v1::KernelNode> kernel = KernelView(job, job.tree->KernelIndex(summary.best_node()), /*whole=*/true);
  if (!kernel.ok()) {
    LogWarning("engine", "the best kernel of ", job.id, " cannot be put into the bank: ", kernel.status().message());
    return;
  }
  bank::Entry entry = EntryOf(*kernel, summary, operation, absl::ToUnixNanos(clock_.Now()));
  if (entry.entry.device() == v1::DEVICE_KIND_UNSPECIFIED) entry.entry.set_device(job.device);
  bank_.Add(std::move(entry), &batch_);
}

void EngineImpl::DoAddBank(const v1::AddBankEntryRequest& request, Reply<v1::BankEntry> reply) {
  bank::Entry made;
  if (!request.node().empty()) {
    const size_t slash = request.node().find('/');
    absl::StatusOr<v1::TreeNode> node = DoGetNode(request.node());
    if (!node.ok()) return reply(node.status());
    if (!node->has_kernel() || node->kernel().result().verdict() != v1::VERDICT_CORRECT) {
      return reply(absl::FailedPreconditionError(
          absl::StrCat(request.node(), " is not a kernel with the verdict CORRECT; only those go into the bank")));
    }
    absl::StatusOr<Job*> job = FindJob(request.node().substr(0, slash));
    if (!job.ok()) return reply(job.status());
    std::string operation = request.entry().operation();
    if (operation.empty() && (*job)->tree->description().has_value() && deps_.recognise_operation) {
      operation = deps_.recognise_operation(*(*job)->tree->description());
    }
    if (operation.empty()) {
      return reply(absl::FailedPreconditionError(
          absl::StrCat("the kind of operation of ", request.node(), " is not known: name it (entry.operation)")));
    }
    made = EntryOf(node->kernel(), View(**job), operation, absl::ToUnixNanos(clock_.Now()));
    made.entry.set_note(Utf8Prefix(request.entry().note(), 1000));
    made.entry.clear_origin_job();  // by hand: no search pushes it out; origin_node still says where it comes from
  } else {
    const v1::BankEntry& entry = request.entry();
    if (entry.operation().empty() || entry.operation().size() > 64 || !IsValidUtf8(entry.operation())) {
      return reply(absl::InvalidArgumentError("entry.operation: name the kind of operation, such as layer_norm"));
    }
    if (entry.device() != v1::DEVICE_KIND_CPU && entry.device() != v1::DEVICE_KIND_CUDA) {
      return reply(absl::InvalidArgumentError("entry.device: must be CPU or CUDA"));
    }
    if (absl::Status status = ValidateCandidate(entry.candidate(), entry.device(), "entry.candidate"); !status.ok()) {
      return reply(status);
    }
    made.entry = entry;
    made.entry.set_id(RandomId("b-", 8));
    made.entry.set_arch(Utf8Prefix(entry.arch(), 64));
    made.entry.set_recipe(Utf8Prefix(entry.recipe(), 64 << 10));
    made.entry.set_problem_name(Utf8Prefix(entry.problem_name(), 256));
    made.entry.set_note(Utf8Prefix(entry.note(), 1000));
    made.entry.clear_origin_job();
    made.entry.set_added_unix_nanos(absl::ToUnixNanos(clock_.Now()));
    made.source_sha256 = PutBlob(entry.candidate().source());
    made.entry.mutable_candidate()->clear_source();
  }
  const std::string id = bank_.Add(std::move(made), &batch_);
  AfterCommit<v1::BankEntry>(std::move(reply), [this, id]() -> absl::StatusOr<v1::BankEntry> {
    GROVE_ASSIGN_OR_RETURN(const bank::Entry* entry, bank_.Find(id));
    return WithSource(*entry);
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> CreateEngine(EngineOptions options, EngineDependencies dependencies) {
  auto engine = std::make_unique<EngineImpl>(std::move(options), std::move(dependencies));
  GROVE_RETURN_IF_ERROR(engine->Restore());
  engine->Start();
  return engine;
}

}  // namespace grove::coordinator
