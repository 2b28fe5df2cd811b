#include "worker/rpc/farm_client.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/rpc/status.h"
#include "grove/v1/services.grpc.pb.h"
#include "worker/rpc/sendable.h"

namespace grove::worker {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

// From the call to the welcome: a connection attempt may take 5 s (common/rpc/arguments.h), a coordinator that replays
// its journal a few more.
constexpr std::chrono::seconds kWelcomeTimeout{20};

// The same complaint is logged once a minute, not at every attempt.
constexpr std::chrono::seconds kRepeatComplaint{60};

// Results that could neither be written to the spool nor sent; more are dropped, and their leases run out.
constexpr std::size_t kMaxInMemory = 64;

std::chrono::nanoseconds ToChrono(absl::Duration duration) { return absl::ToChronoNanoseconds(duration); }

// What reactions and callbacks leave for the client's thread.
struct Mailbox {
  std::mutex mu;
  std::condition_variable changed;
  bool dirty = false;

  bool read_done = false, read_ok = false;
  bool write_done = false, write_ok = false;
  std::optional<absl::Status> done;
  std::vector<v1::WorkResult> results;
  std::map<LeaseKey, v1::WorkerProgress> progress;  // the newest of each lease
  std::function<void()> on_idle;
  bool drain = false;
  bool stop = false;

  template <typename Change>
  void Post(Change change) {
    std::lock_guard<std::mutex> lock(mu);
    change();
    dirty = true;
    changed.notify_one();
  }
};

// One stream. Its methods are called on the client's thread; a hold keeps it open for them until Release. Destroyed
// after OnDone.
class Session final : public grpc::ClientBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage> {
 public:
  Session(v1::Farm::Stub& stub, Mailbox& mailbox) : mailbox_(mailbox) {
    // No deadline: the stream lives as long as the worker; keepalive ends it when the peer is gone.
    stub.async()->Connect(&context_, this);
    AddHold();
    StartRead(&in);
    StartCall();
  }

  void ReadNext() {
    in.Clear();
    StartRead(&in);
  }
  void Write() { StartWrite(&out); }
  void Cancel() { context_.TryCancel(); }
  // No more calls from the client's thread: OnDone may come.
  void Release() {
    if (!std::exchange(released_, true)) RemoveHold();
  }

  v1::CoordinatorMessage in;  // filled in when the mailbox says read_done
  v1::WorkerMessage out;      // ours while no write is in flight
  bool writing = false;
  bool hello_sent = false;
  bool welcomed = false;
  bool leaving = false;
  bool heartbeat_due = false;
  SteadyTime opened = std::chrono::steady_clock::now();
  SteadyTime next_heartbeat = SteadyTime::max();

 private:
  void OnReadDone(bool ok) override {
    mailbox_.Post([&] {
      mailbox_.read_done = true;
      mailbox_.read_ok = ok;
    });
  }
  void OnWriteDone(bool ok) override {
    mailbox_.Post([&] {
      mailbox_.write_done = true;
      mailbox_.write_ok = ok;
    });
  }
  void OnDone(const grpc::Status& status) override {
    // The last thing that touches this object: the client destroys it when it sees `done`.
    mailbox_.Post([&] { mailbox_.done = rpc::FromGrpc(status); });
  }

  Mailbox& mailbox_;
  grpc::ClientContext context_;
  bool released_ = false;
};

class GrpcFarmClient final : public FarmClient {
 public:
  GrpcFarmClient(FarmClientOptions options, std::shared_ptr<grpc::Channel> channel, Spool spool)
      : options_(std::move(options)),
        stub_(v1::Farm::NewStub(channel)),
        spool_(std::move(spool)),
        backoff_(options_.backoff, options_.seed) {
    stats_.spool_files = static_cast<int64_t>(spool_.size());
    stats_.spool_bytes = spool_.bytes();
  }
  ~GrpcFarmClient() override { Stop(); }

  void Start(Pipeline& pipeline) override {
    pipeline_ = &pipeline;
    thread_ = std::thread([this] { Run(); });
  }

  void OnProgress(const v1::WorkerProgress& progress) override {
    mailbox_.Post([&] { mailbox_.progress[KeyOf(progress.lease())] = progress; });
  }

  void OnResult(v1::WorkResult result) override {
    mailbox_.Post([&] { mailbox_.results.push_back(std::move(result)); });
  }

  void Drain(std::function<void()> on_idle) override {
    mailbox_.Post([&] {
      mailbox_.drain = true;
      mailbox_.on_idle = std::move(on_idle);
    });
  }

  void Stop() override {
    mailbox_.Post([&] { mailbox_.stop = true; });
    std::lock_guard<std::mutex> lock(join_mu_);
    if (thread_.joinable()) thread_.join();
  }

  FarmClientStats Stats() const override {
    std::lock_guard<std::mutex> lock(stats_mu_);
    return stats_;
  }

 private:
  // ------------------------------------------------------------------------------------------- the client's thread
  struct News {
    bool read_done, read_ok, write_done, write_ok;
    std::optional<absl::Status> done;
    std::vector<v1::WorkResult> results;
    std::map<LeaseKey, v1::WorkerProgress> progress;
    bool drain, stop;
  };

  void Run() {
    next_attempt_ = std::chrono::steady_clock::now();
    for (;;) {
      News news = Wait();
      for (v1::WorkResult& result : news.results) {
        // What failed may have cost the device: the coordinator is told how it is before it gives the work out again.
        if (result.outcome_case() == v1::WorkResult::kInfrastructureFailure && session_ != nullptr &&
            session_->welcomed) {
          session_->heartbeat_due = true;
        }
        Keep(std::move(result));
      }
      for (auto& [key, progress] : news.progress) {
        if (assigned_.count(key) > 0) progress_[key] = std::move(progress);
      }
      if (news.drain && !draining_) {
        draining_ = true;
        if (session_ != nullptr && session_->welcomed) session_->heartbeat_due = true;
      }
      if (session_ != nullptr) {
        if (news.write_done) {
          session_->writing = false;
          session_->out.Clear();
          if (!news.write_ok) Leave(/*cancel=*/true);
        }
        if (news.read_done) {
          if (news.read_ok && !session_->leaving) {
            Handle(session_->in);
            session_->ReadNext();
          } else {
            Leave(/*cancel=*/false);
          }
        }
        const SteadyTime now = std::chrono::steady_clock::now();
        if (!session_->welcomed && !session_->leaving && now >= session_->opened + kWelcomeTimeout) {
          silent_ = true;
          Leave(/*cancel=*/true);
        }
        if (now >= session_->next_heartbeat) session_->heartbeat_due = true;
        if (news.stop) Leave(/*cancel=*/true);
        if (news.done.has_value()) {
          Ended(*news.done, news.stop);
        } else if (!session_->leaving) {
          WriteNext();
        }
      }
      Publish();
      if (news.stop && session_ == nullptr) return;
      if (session_ == nullptr && !refused_ && std::chrono::steady_clock::now() >= next_attempt_) Open();
      TellIfIdle();
    }
  }

  News Wait() {
    SteadyTime until = SteadyTime::max();
    if (session_ == nullptr) {
      if (!refused_) until = next_attempt_;
    } else if (!session_->leaving) {
      until = session_->welcomed ? session_->next_heartbeat : session_->opened + kWelcomeTimeout;
      if (session_->heartbeat_due) until = SteadyTime::max();  // due already; it goes out after the write in flight
    }
    std::unique_lock<std::mutex> lock(mailbox_.mu);
    auto woken = [&] { return mailbox_.dirty; };
    if (until == SteadyTime::max()) {
      mailbox_.changed.wait(lock, woken);
    } else {
      mailbox_.changed.wait_until(lock, until, woken);
    }
    mailbox_.dirty = false;
    News news{std::exchange(mailbox_.read_done, false),
              mailbox_.read_ok,
              std::exchange(mailbox_.write_done, false),
              mailbox_.write_ok,
              std::exchange(mailbox_.done, std::nullopt),
              std::exchange(mailbox_.results, {}),
              std::exchange(mailbox_.progress, {}),
              mailbox_.drain,
              mailbox_.stop};
    return news;
  }

  void Open() {
    LogDebug("farm", "connecting to ", options_.channel.address);
    unsent_.clear();
    for (const LeaseKey& key : spool_.Leases()) unsent_.push_back(key);
    for (const auto& [key, result] : memory_) unsent_.push_back(key);
    progress_.clear();
    silent_ = false;
    session_ = std::make_unique<Session>(*stub_, mailbox_);
    WriteNext();
  }

  void Leave(bool cancel) {
    session_->leaving = true;
    if (cancel) session_->Cancel();
    session_->Release();
  }

  void Ended(absl::Status status, bool stopping) {
    const bool welcomed = session_->welcomed;
    session_.reset();
    if (stopping) return;
    if (silent_) status = absl::DeadlineExceededError("it accepted the stream but did not answer");
    if (status.ok()) status = absl::UnavailableError("the coordinator ended the session");
    if (absl::IsFailedPrecondition(status)) {
      refused_ = true;
      LogError("farm", "the coordinator at ", options_.channel.address, " refuses this worker: ", status.message());
    } else {
      if (!welcomed) {
        std::lock_guard<std::mutex> lock(stats_mu_);
        ++stats_.connect_failures_total;
      }
      const absl::Duration wait = backoff_.Next();
      next_attempt_ = std::chrono::steady_clock::now() + ToChrono(wait);
      Complain(status, wait);
    }
    {
      std::lock_guard<std::mutex> lock(stats_mu_);
      stats_.last_error = std::string(status.message());
    }
    if (refused_ && options_.on_refused) options_.on_refused(status);
  }

  void Complain(const absl::Status& status, absl::Duration wait) {
    const SteadyTime now = std::chrono::steady_clock::now();
    const std::string text(status.message());
    if (text == last_complaint_ && now < last_complained_ + kRepeatComplaint) return;
    last_complaint_ = text;
    last_complained_ = now;
    LogWarning("farm", "no session with the coordinator at ", options_.channel.address, ": ", text,
               "; trying again in ", absl::FormatDuration(absl::Trunc(wait, absl::Milliseconds(1))),
               " and until it answers");
  }

  void Handle(v1::CoordinatorMessage& message) {
    switch (message.body_case()) {
      case v1::CoordinatorMessage::kWelcome:
        Welcomed(message.welcome());
        break;
      case v1::CoordinatorMessage::kAssignment:
        Assigned(std::move(*message.mutable_assignment()));
        break;
      case v1::CoordinatorMessage::kAck:
        Acknowledged(message.ack());
        break;
      case v1::CoordinatorMessage::kRevoke:
        Revoked(message.revoke().lease(), message.revoke().reason());
        break;
      case v1::CoordinatorMessage::BODY_NOT_SET:
        break;  // of a newer coordinator
    }
  }

  void Welcomed(const v1::Welcome& welcome) {
    if (std::exchange(session_->welcomed, true)) return;
    // 50 ms to a minute: what a sane coordinator asks for, whatever arrives.
    const double seconds = welcome.heartbeat_seconds() > 0 ? std::clamp(welcome.heartbeat_seconds(), 0.05, 60.0) : 2.0;
    heartbeat_ = ToChrono(absl::Seconds(seconds));
    session_->heartbeat_due = true;
    backoff_.Reset();
    last_complaint_.clear();
    LogInfo("farm", "connected to the coordinator at ", options_.channel.address, " (version ",
            welcome.coordinator_version(), ")");
    for (const v1::Lease& lease : welcome.revoked()) Revoked(lease, "not this worker's any more");
    std::lock_guard<std::mutex> lock(stats_mu_);
    ++stats_.sessions_total;
    stats_.last_error.clear();
  }

  void Assigned(v1::Assignment assignment) {
    const LeaseKey key = KeyOf(assignment.lease());
    if (key.first.empty() || key.second <= 0) {
      LogWarning("farm", "an assignment without a lease; ignored");
      return;
    }
    if (assigned_.count(key) > 0 || spool_.Contains(key) || memory_.count(key) > 0) return;  // said twice
    {
      std::lock_guard<std::mutex> lock(stats_mu_);
      ++stats_.assignments_total;
    }
    std::string refusal;
    if (assignment.work_case() == v1::Assignment::WORK_NOT_SET) {
      refusal = absl::StrCat("this worker (version ", options_.version, ") does not know this kind of work");
    } else if (draining_) {
      refusal = "the worker is shutting down";
    } else if (static_cast<int>(assigned_.size()) >= std::max(1, pipeline_->Capacity())) {
      refusal = absl::StrCat("the worker has its ", assigned_.size(), " leases already");
    }
    if (!refusal.empty()) {
      v1::WorkResult result;
      *result.mutable_lease() = assignment.lease();
      result.set_infrastructure_failure(refusal);
      assigned_.insert(key);
      return Keep(std::move(result));
    }
    // An older attempt at the same work has lost its right.
    std::vector<LeaseKey> older;
    for (const LeaseKey& other : assigned_) {
      if (other.first == key.first) older.push_back(other);
    }
    for (const LeaseKey& other : older) Revoked(LeaseOf(other), "superseded");
    assigned_.insert(key);
    pipeline_->Submit(std::move(assignment));
  }

  void Acknowledged(const v1::ResultAck& ack) {
    const LeaseKey key = KeyOf(ack.lease());
    if (!spool_.Contains(key) && memory_.count(key) == 0) return;
    Forget(key);
    std::lock_guard<std::mutex> lock(stats_mu_);
    ++stats_.results_acknowledged_total;
    if (ack.stale()) ++stats_.results_stale_total;
  }

  void Revoked(const v1::Lease& lease, absl::string_view reason) {
    const LeaseKey key = KeyOf(lease);
    Forget(key);  // no result is wanted
    if (assigned_.erase(key) == 0) return;
    LogInfo("farm", "lease of ", key.first, " (attempt ", key.second, ") revoked: ", reason);
    progress_.erase(key);
    pipeline_->Cancel(lease);
    std::lock_guard<std::mutex> lock(stats_mu_);
    ++stats_.revocations_total;
  }

  void Forget(const LeaseKey& key) {
    memory_.erase(key);
    if (absl::Status removed = spool_.Remove(key); !removed.ok()) LogWarning("farm", removed.message());
  }

  // A result that the pipeline produced: durable first, then to be sent.
  void Keep(v1::WorkResult result) {
    const LeaseKey key = KeyOf(result.lease());
    if (assigned_.count(key) == 0) return;  // revoked meanwhile
    MakeSendable(result);
    if (absl::Status put = spool_.Put(result); !put.ok()) {
      LogError("farm", "cannot keep the result of ", key.first, " on disk: ", put.message());
      if (memory_.size() >= kMaxInMemory) {
        std::lock_guard<std::mutex> lock(stats_mu_);
        ++stats_.results_lost_total;
        assigned_.erase(key);
        return;
      }
      memory_[key] = std::move(result);
    }
    assigned_.erase(key);
    progress_.erase(key);
    if (session_ != nullptr) unsent_.push_back(key);
  }

  void WriteNext() {
    if (session_->writing) return;
    if (!session_->hello_sent) {
      FillHello(*session_->out.mutable_hello());
      session_->hello_sent = true;
    } else if (session_->heartbeat_due) {
      FillHeartbeat(*session_->out.mutable_heartbeat());
      session_->heartbeat_due = false;
      session_->next_heartbeat = std::chrono::steady_clock::now() + heartbeat_;
    } else if (!FillResult() && !FillProgress()) {
      return;
    }
    session_->writing = true;
    session_->Write();
  }

  void FillHello(v1::WorkerHello& hello) {
    hello.set_worker_id(options_.worker_id);
    hello.set_name(options_.name);
    hello.set_version(options_.version);
    hello.set_protocol(1);
    *hello.mutable_device() = pipeline_->Device();
    hello.set_capacity(draining_ ? 0 : pipeline_->Capacity());
    for (const std::string& tag : options_.tags) hello.add_tags(tag);
    for (const LeaseKey& key : assigned_) *hello.add_running() = LeaseOf(key);
    for (const LeaseKey& key : unsent_) *hello.add_unacknowledged() = LeaseOf(key);
    for (const std::string& layer : pipeline_->SandboxLayers()) hello.add_sandbox_layers(layer);
    RepairUtf8(hello);
  }

  void FillHeartbeat(v1::WorkerHeartbeat& heartbeat) {
    for (const LeaseKey& key : assigned_) *heartbeat.add_running() = LeaseOf(key);
    heartbeat.set_slot_state(options_.slot_state ? options_.slot_state() : pipeline_->Stats().slot_state);
    heartbeat.set_draining(draining_);
    heartbeat.set_health(options_.health ? options_.health() : pipeline_->Stats().health);
    RepairUtf8(heartbeat);
  }

  bool FillResult() {
    while (!unsent_.empty()) {
      const LeaseKey key = unsent_.front();
      unsent_.pop_front();
      if (const auto kept = memory_.find(key); kept != memory_.end()) {
        *session_->out.mutable_result() = kept->second;
      } else if (!spool_.Contains(key)) {
        continue;  // revoked before it was sent
      } else if (absl::StatusOr<v1::WorkResult> result = spool_.Get(key); result.ok()) {
        *session_->out.mutable_result() = *std::move(result);
      } else {
        std::lock_guard<std::mutex> lock(stats_mu_);
        ++stats_.results_lost_total;
        continue;
      }
      std::lock_guard<std::mutex> lock(stats_mu_);
      ++stats_.results_sent_total;
      return true;
    }
    return false;
  }

  bool FillProgress() {
    if (!session_->welcomed || progress_.empty()) return false;
    auto first = progress_.begin();
    *session_->out.mutable_progress() = std::move(first->second);
    RepairUtf8(*session_->out.mutable_progress());
    progress_.erase(first);
    return true;
  }

  void Publish() {
    std::lock_guard<std::mutex> lock(stats_mu_);
    stats_.connected = session_ != nullptr && session_->welcomed && !session_->leaving;
    stats_.spool_files = static_cast<int64_t>(spool_.size());
    stats_.spool_bytes = spool_.bytes();
    stats_.running = static_cast<int64_t>(assigned_.size());
  }

  void TellIfIdle() {
    if (!draining_ || !assigned_.empty()) return;
    // Without a session, what is unacknowledged is safe in the spool and waits there for the next start.
    const bool home = spool_.size() == 0 && memory_.empty();
    const bool connected = session_ != nullptr && session_->welcomed && !session_->leaving;
    if (!home && connected) return;
    std::function<void()> on_idle;
    {
      std::lock_guard<std::mutex> lock(mailbox_.mu);
      on_idle = std::exchange(mailbox_.on_idle, nullptr);
    }
    if (on_idle) on_idle();
  }

  const FarmClientOptions options_;
  const std::unique_ptr<v1::Farm::Stub> stub_;
  Pipeline* pipeline_ = nullptr;
  Mailbox mailbox_;
  std::mutex join_mu_;
  std::thread thread_;

  // Owned by the client's thread.
  Spool spool_;
  std::map<LeaseKey, v1::WorkResult> memory_;  // results that the spool could not take
  std::set<LeaseKey> assigned_;                // the pipeline has these
  std::deque<LeaseKey> unsent_;                // results to send in this session
  std::map<LeaseKey, v1::WorkerProgress> progress_;
  std::unique_ptr<Session> session_;
  Backoff backoff_;
  SteadyTime next_attempt_{};
  std::chrono::nanoseconds heartbeat_ = std::chrono::seconds(2);
  bool draining_ = false;
  bool refused_ = false;
  bool silent_ = false;  // this session was given up for want of a welcome
  std::string last_complaint_;
  SteadyTime last_complained_{};

  mutable std::mutex stats_mu_;
  FarmClientStats stats_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<FarmClient>> FarmClient::Create(FarmClientOptions options) {
  GROVE_ASSIGN_OR_RETURN(std::shared_ptr<grpc::Channel> channel, rpc::CreateChannel(options.channel));
  GROVE_ASSIGN_OR_RETURN(Spool spool, Spool::Open(options.spool_dir, options.spool));
  return std::unique_ptr<FarmClient>(
      std::make_unique<GrpcFarmClient>(std::move(options), std::move(channel), std::move(spool)));
}

}  // namespace grove::worker
