// The engine's class and what it holds, shared by the files that implement it and by nobody else:
//   engine_impl.cc   the loop: messages, turns, commits
//   engine_jobs.cc   jobs from submission to end, watching, the views of their nodes
//   engine_farm.cc   work, workers and results
//   engine_search.cc policies, generators, the bank
// How it works is told at the head of engine_impl.cc.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "coordinator/bank/bank.h"
#include "coordinator/engine/bounds.h"
#include "coordinator/engine/engine_impl.h"
#include "coordinator/engine/executor.h"
#include "coordinator/engine/job_tree.h"
#include "coordinator/engine/result_index.h"
#include "coordinator/scheduler/scheduler.h"

namespace grove::coordinator::engine_internal {

inline constexpr size_t kMaxTurn = 512;  // messages of one turn: bounds the batch and the time to the first reply
inline constexpr size_t kMaxWaiting = 100'000;  // messages in the mailbox: beyond that callers get RESOURCE_EXHAUSTED
inline constexpr size_t kMaxDeferred = 10'000;  // put off while the store cannot be written
inline constexpr size_t kMaxWaiters = 10'000;   // watchers of all jobs
inline constexpr size_t kProgressRing = 256;    // progress events kept per job
inline constexpr size_t kLoadedTrees = 4;       // trees of ended jobs that stay in memory after somebody looked at them
inline constexpr int kMaxLiveJobs = 10'000;     // submitted and not ended
inline constexpr int64_t kMaxOpenKernels = 200'000;  // waiting for a verdict, over all jobs
inline constexpr size_t kMaxTriedIdeas =
    1000;  // newest ideas that a generator is told of: a prompt has no room for more
inline constexpr size_t kMaxSiblings = 8;
inline constexpr size_t kProblemCacheBytes = 8 << 20;
inline constexpr size_t kMaxStageSamples = 10'000;                // between two snapshots, per stage
inline constexpr int kMaxAdvances = 16;                           // of one turn: more is for the next one
inline constexpr int kRunAhead = 2;                               // ready evaluations beyond one per slot
inline constexpr absl::Duration kUnfitGrace = absl::Seconds(10);  // a worker may be about to connect
inline constexpr absl::Duration kOutageFirst = absl::Seconds(1);
inline constexpr absl::Duration kOutageMax = absl::Minutes(5);
inline constexpr absl::Duration kStoreRetryFirst = absl::Milliseconds(250);
inline constexpr absl::Duration kStoreRetryMax = absl::Seconds(5);
inline constexpr size_t kMaxDescriptionBytes = 1 << 20;  // of a ProblemDescription in the journal

inline std::string LowerVerdict(v1::Verdict verdict) {
  std::string name = v1::Verdict_Name(verdict);
  return absl::AsciiStrToLower(name.substr(std::min<size_t>(name.size(), 8)));  // without VERDICT_
}

inline std::string LowerJobState(v1::JobState state) {
  std::string name = v1::JobState_Name(state);
  return absl::AsciiStrToLower(name.substr(std::min<size_t>(name.size(), 10)));  // without JOB_STATE_
}

inline const char* DeviceName(v1::DeviceKind device) {
  return device == v1::DEVICE_KIND_CUDA ? "cuda" : device == v1::DEVICE_KIND_CPU ? "cpu" : "any";
}

inline bool IsOutage(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status);
}

inline bool IsEnded(v1::JobState state) {
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
  absl::flat_hash_map<int, std::string> result_keys;      // of kernels that are being evaluated: result_index.h
  v1::DeviceKind device = v1::DEVICE_KIND_UNSPECIFIED;    // what its work needs
  absl::Duration unfit_since = absl::InfiniteDuration();
  bool unfit = false;
  bool held = false;  // EngineOptions::hold_before: has not ended and is not in live_
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
        absl::StrCat("the coordinator's store cannot be written: ", store_error_.message(),
                     absl::IsResourceExhausted(store_error_)
                         ? "; free some space on its disk and try again (nothing that was acknowledged is lost)"
                         : "; see its log, and try again"));
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
  void Hold(Job& job);
  void Release(Job& job);
  void EndJob(Job& job, v1::JobState state, const std::string& reason);
  v1::Job View(const Job& job) const;
  v1::Event StateEvent(v1::JobState state, const std::string& reason) const {
    v1::Event event;
    event.mutable_job_state()->set_state(state);
    event.mutable_job_state()->set_reason(Utf8Prefix(reason, 2000));
    return event;
  }
  void DoSubmit(const v1::SubmitJobRequest& request, Reply<v1::SubmitJobResponse> reply);
  // FAILED_PRECONDITION when the job under a known key is other work than what is asked for now.
  absl::Status CheckSameWork(Job& job, const v1::JobSpec& asked);
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
  Job* JobOfWork(const std::string& work);
  void Evaluate(Job& job, int kernel);
  void AddKernelWork(Job& job, int kernel);
  void EvaluateAgain(Job& job);
  absl::StatusOr<v1::EvaluationResult> ReadResult(const std::string& sha256);
  void NameChosen(const Job& job, int kernel, v1::EvaluationResult* whole, v1::EvaluationFinished* finished);
  void FinishKernel(Job& job, int kernel, int attempt, v1::EvaluationResult whole);
  void FinishDuplicate(Job& job, int kernel, int original);
  // Gives an equal evaluation's result where the job allows it and there is one of an equal machine.
  bool FinishReused(Job& job, int kernel);
  void Lost(const scheduler::Loss& loss);
  void LeasedEvent(const std::string& work, int attempt, const std::string& worker);
  void Assign(const scheduler::Grant& grant);
  void DoHello(uint64_t session, const v1::WorkerHello& hello, const std::shared_ptr<WorkerLink>& link);
  void DoHeartbeat(uint64_t session, const v1::WorkerHeartbeat& heartbeat);
  void DoProgress(uint64_t session, const v1::WorkerProgress& progress);
  void DoResult(uint64_t session, v1::WorkResult result);
  void Calibrated(Job& job, const std::string& worker, const v1::Calibration& calibration);
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
    std::shared_ptr<const v1::Candidate> rival;  // null = none
    uint64_t used = 0;
  };
  std::map<std::string, CachedProblem> problems_;  // by job
  size_t problem_bytes_ = 0;

  EngineStats stats_;
  std::map<std::string, int64_t> verdicts_;
  std::map<std::string, std::vector<double>> stages_;
  ResultIndex results_;

  std::unique_ptr<Executor> executor_;  // last: its threads post messages
};

}  // namespace grove::coordinator::engine_internal
