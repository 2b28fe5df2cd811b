// An engine that behaves: one thread, replies by callback, jobs with events that a test appends, sessions that it can
// see.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coordinator/engine/engine.h"

namespace grove::testing {

// Thread-safe.
class FakeEngine : public coordinator::Engine {
 public:
  FakeEngine() : thread_([this] { Loop(); }) {}
  ~FakeEngine() override { Stop(); }

  // --------------------------------------------------------------------------------------------------- for tests
  void AddJob(const std::string& id) {
    Sync([&] { jobs_[id]; });
  }
  void Append(const std::string& job, std::vector<v1::Event> events, bool ended = false) {
    Sync([&] {
      Job& j = jobs_[job];
      for (v1::Event& event : events) j.events.push_back(std::move(event));
      j.ended = j.ended || ended;
      WakeWaiters();
    });
  }
  void SetTree(const std::string& job, std::vector<v1::TreeNode> nodes) {
    Sync([&] { jobs_[job].tree = std::move(nodes); });
  }
  void SetArtifact(const std::string& sha256, std::string content) {
    Sync([&] { artifacts_[sha256] = std::move(content); });
  }
  void SetStats(coordinator::EngineStats stats) {
    Sync([&] { stats_ = std::move(stats); });
  }
  // While on, nothing is answered: a busy or hung engine.
  void Pause(bool on) {
    std::lock_guard<std::mutex> lock(mu_);
    paused_ = on;
    changed_.notify_all();
  }
  int waiting() {
    int n = 0;
    Sync([&] { n = static_cast<int>(waiters_.size()); });
    return n;
  }
  int64_t events_handed_out() {
    int64_t n = 0;
    Sync([&] { n = handed_out_; });
    return n;
  }

  struct SessionState {
    v1::WorkerHello hello;
    std::vector<v1::WorkerMessage> said;
    std::shared_ptr<coordinator::WorkerLink> link;
    bool closed = false;
  };
  // Called on the engine's thread for each message of a worker, after it was recorded.
  std::function<void(uint64_t session, SessionState& state, const v1::WorkerMessage&)> on_said;
  std::function<void(uint64_t session, SessionState& state)> on_connected;

  // Waits until `holds` of all sessions, seen on the engine's thread. Fails after 60 s, which only a broken build
  // reaches.
  bool WaitFor(const std::function<bool(const std::map<uint64_t, SessionState>&)>& holds) {
    std::unique_lock<std::mutex> lock(sessions_mu_);
    return sessions_changed_.wait_for(lock, std::chrono::seconds(60), [&] { return holds(sessions_); });
  }

  // -------------------------------------------------------------------------------------------------------- Engine
  void SubmitJob(v1::SubmitJobRequest request, coordinator::Reply<v1::SubmitJobResponse> reply) override {
    Post(
        [this, request = std::move(request), reply = std::move(reply)] {
          v1::SubmitJobResponse response;
          const std::string& key = request.idempotency_key();
          response.set_existed(keys_.count(key) > 0);
          if (!response.existed()) {
            keys_[key] = absl::StrCat("j-", 10000000 + keys_.size());
            jobs_[keys_[key]];
          }
          response.mutable_job()->set_id(keys_[key]);
          reply(response);
        },
        [reply] { reply(absl::CancelledError("stopped")); });
  }
  void GetJob(std::string id, coordinator::Reply<v1::Job> reply) override {
    Post(
        [this, id, reply] {
          if (jobs_.count(id) == 0) return reply(absl::NotFoundError(absl::StrCat("there is no job ", id)));
          v1::Job job;
          job.set_id(id);
          reply(job);
        },
        [reply] { reply(absl::CancelledError("stopped")); });
  }
  void ListJobs(v1::ListJobsRequest, coordinator::Reply<v1::ListJobsResponse> reply) override {
    Post(
        [this, reply] {
          v1::ListJobsResponse response;
          for (const auto& [id, job] : jobs_) response.add_jobs()->set_id(id);
          reply(response);
        },
        [reply] { reply(absl::CancelledError("stopped")); });
  }
  void CancelJob(v1::CancelJobRequest request, coordinator::Reply<v1::Job> reply) override {
    GetJob(request.id(), reply);
  }
  void ResumeJob(v1::ResumeJobRequest request, coordinator::Reply<v1::Job> reply) override {
    GetJob(request.id(), reply);
  }

  uint64_t NextEvents(std::string job, uint64_t after_seq, int64_t progress, int max,
                      coordinator::Reply<coordinator::EventBatch> reply) override {
    const uint64_t ticket = ++next_ticket_;
    Post(
        [this, ticket, job, after_seq, progress, max, reply] {
          if (jobs_.count(job) == 0) return reply(absl::NotFoundError(absl::StrCat("there is no job ", job)));
          waiters_.push_back({ticket, job, after_seq, progress, max, reply});
          WakeWaiters();
        },
        [reply] { reply(absl::CancelledError("stopped")); });
    return ticket;
  }
  void CancelWait(uint64_t ticket) override {
    Post([this, ticket] {
      for (auto it = waiters_.begin(); it != waiters_.end(); ++it) {
        if (it->ticket != ticket) continue;
        auto reply = it->reply;
        waiters_.erase(it);
        return reply(absl::CancelledError("no longer wanted"));
      }
    });
  }
  void GetTree(std::string job, int64_t offset, int max, coordinator::Reply<std::vector<v1::TreeNode>> reply) override {
    Post(
        [this, job, offset, max, reply] {
          if (jobs_.count(job) == 0) return reply(absl::NotFoundError(absl::StrCat("there is no job ", job)));
          const auto& tree = jobs_[job].tree;
          std::vector<v1::TreeNode> page;
          for (int64_t i = offset; i < static_cast<int64_t>(tree.size()) && static_cast<int>(page.size()) < max; ++i) {
            page.push_back(tree[i]);
          }
          reply(page);
        },
        [reply] { reply(absl::CancelledError("stopped")); });
  }
  void GetNode(std::string id, coordinator::Reply<v1::TreeNode> reply) override {
    Post([id, reply] { reply(absl::NotFoundError(absl::StrCat("there is no node ", id))); });
  }
  void GetArtifact(std::string sha256, coordinator::Reply<std::string> reply) override {
    Post(
        [this, sha256, reply] {
          if (artifacts_.count(sha256) == 0) return reply(absl::NotFoundError("there is no such artifact"));
          reply(artifacts_[sha256]);
        },
        [reply] { reply(absl::CancelledError("stopped")); });
  }
  void ListBank(v1::ListBankRequest, coordinator::Reply<v1::ListBankResponse> reply) override {
    Post([reply] { reply(v1::ListBankResponse()); });
  }
  void GetBankEntry(std::string id, coordinator::Reply<v1::BankEntry> reply) override {
    Post([id, reply] { reply(absl::NotFoundError(absl::StrCat("there is no bank entry ", id))); });
  }
  void AddBankEntry(v1::AddBankEntryRequest request, coordinator::Reply<v1::BankEntry> reply) override {
    Post([request, reply] { reply(request.entry()); });
  }
  void RemoveBankEntry(std::string, coordinator::Reply<v1::RemoveBankEntryResponse> reply) override {
    Post([reply] { reply(v1::RemoveBankEntryResponse()); });
  }

  uint64_t WorkerConnected(v1::WorkerHello hello, std::shared_ptr<coordinator::WorkerLink> link) override {
    const uint64_t session = ++next_session_;
    Post([this, session, hello = std::move(hello), link = std::move(link)] {
      ChangeSessions([&] {
        SessionState& state = sessions_[session];
        state.hello = hello;
        state.link = link;
        if (on_connected) on_connected(session, state);
      });
    });
    return session;
  }
  void WorkerSaid(uint64_t session, v1::WorkerMessage message) override {
    Post([this, session, message = std::move(message)] {
      ChangeSessions([&] {
        SessionState& state = sessions_[session];
        state.said.push_back(message);
        if (on_said) on_said(session, state, message);
      });
    });
  }
  void WorkerClosed(uint64_t session) override {
    Post([this, session] {
      ChangeSessions([&] {
        sessions_[session].closed = true;
        sessions_[session].link.reset();
      });
    });
  }
  void ListWorkers(coordinator::Reply<v1::ListWorkersResponse> reply) override {
    Post([reply] { reply(v1::ListWorkersResponse()); });
  }
  void GetFarmInfo(coordinator::Reply<v1::FarmInfo> reply) override {
    Post([reply] { reply(v1::FarmInfo()); }, [reply] { reply(absl::CancelledError("stopped")); });
  }
  void Stats(coordinator::Reply<coordinator::EngineStats> reply) override {
    Post(
        [this, reply] {
          reply(stats_);
          stats_.stage_seconds.clear();  // handed out once
        },
        [reply] { reply(absl::CancelledError("stopped")); });
  }
  void Drain() override {}
  void Stop() override {
    {
      std::lock_guard<std::mutex> lock(mu_);
      if (stopped_) return;
      stopped_ = true;
      changed_.notify_all();
    }
    thread_.join();
    for (Waiter& waiter : waiters_) waiter.reply(absl::CancelledError("stopped"));
    waiters_.clear();
    ChangeSessions([&] {
      for (auto& [id, state] : sessions_) state.link.reset();
    });
  }

 private:
  struct Job {
    std::vector<v1::Event> events;
    std::vector<v1::TreeNode> tree;
    bool ended = false;
  };
  struct Waiter {
    uint64_t ticket;
    std::string job;
    uint64_t after_seq;
    int64_t progress;
    int max;
    coordinator::Reply<coordinator::EventBatch> reply;
  };
  struct Task {
    std::function<void()> run, refuse;
  };

  void Post(std::function<void()> run, std::function<void()> refuse = nullptr) {
    {
      std::lock_guard<std::mutex> lock(mu_);
      if (!stopped_) {
        tasks_.push_back({std::move(run), std::move(refuse)});
        changed_.notify_all();
        return;
      }
    }
    if (refuse) refuse();
  }
  void Sync(const std::function<void()>& run) {
    std::mutex mu;
    std::condition_variable cv;
    bool done = false;
    Post([&] {
      run();
      std::lock_guard<std::mutex> lock(mu);
      done = true;
      cv.notify_all();
    });
    std::unique_lock<std::mutex> lock(mu);
    cv.wait(lock, [&] { return done; });
  }
  void ChangeSessions(const std::function<void()>& change) {
    std::lock_guard<std::mutex> lock(sessions_mu_);
    change();
    sessions_changed_.notify_all();
  }
  void WakeWaiters() {
    std::vector<Waiter> waiters = std::move(waiters_);
    waiters_.clear();
    for (Waiter& waiter : waiters) {
      const Job& job = jobs_[waiter.job];
      coordinator::EventBatch batch;
      batch.next_after_seq = waiter.after_seq;
      for (const v1::Event& event : job.events) {
        if (event.seq() <= waiter.after_seq) continue;
        if (static_cast<int>(batch.events.size()) == waiter.max) break;
        batch.events.push_back(event);
        batch.next_after_seq = event.seq();
      }
      batch.ended = job.ended && (job.events.empty() || batch.next_after_seq >= job.events.back().seq());
      if (batch.events.empty() && !batch.ended) {
        waiters_.push_back(std::move(waiter));
      } else {
        handed_out_ += static_cast<int64_t>(batch.events.size());
        waiter.reply(std::move(batch));
      }
    }
  }
  void Loop() {
    std::unique_lock<std::mutex> lock(mu_);
    for (;;) {
      changed_.wait(lock, [&] { return stopped_ || (!paused_ && !tasks_.empty()); });
      if (stopped_) {
        auto left = std::move(tasks_);
        lock.unlock();
        for (Task& task : left) {
          if (task.refuse) task.refuse();
        }
        return;
      }
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task.run();
      lock.lock();
    }
  }

  std::mutex mu_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  bool stopped_ = false;
  bool paused_ = false;
  std::atomic<uint64_t> next_ticket_{0}, next_session_{0};

  // The engine thread's.
  std::map<std::string, Job> jobs_;
  std::map<std::string, std::string> keys_, artifacts_;
  std::vector<Waiter> waiters_;
  coordinator::EngineStats stats_;
  int64_t handed_out_ = 0;

  std::mutex sessions_mu_;
  std::condition_variable sessions_changed_;
  std::map<uint64_t, SessionState> sessions_;

  std::thread thread_;  // last: it uses the rest
};

}  // namespace grove::testing
