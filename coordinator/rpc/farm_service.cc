#include "coordinator/rpc/farm_service.h"

#include <deque>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/rpc/status.h"
#include "coordinator/rpc/client_services.h"
#include "coordinator/rpc/reply.h"
#include "coordinator/rpc/services.h"
#include "coordinator/rpc/validate.h"

namespace grove::coordinator {
namespace {

// What may wait for one worker. It holds at most `capacity` leases, so a handful of assignments, acks and revocations
// is normal; the bounds are what a worker that does not read may cost before it is closed.
constexpr std::size_t kMaxQueuedMessages = 4096;
constexpr std::size_t kMaxQueuedBytes = std::size_t{64} << 20;

// Messages taken from a worker before the engine must have worked them off: then the transport stops reading and
// HTTP/2's flow control stops the worker.
constexpr int kReadCredit = 64;

}  // namespace

// One worker's stream: the transport's half of a session.
//
// One read and one write are in flight at most. The stream ends in this order: Leave (peer gone, Close, or a protocol
// error) tells the engine once and asks for Finish; Finish waits for the write in flight; OnDone drops the
// self-reference. The engine may hold its WorkerLink for as long as it likes: Send and Close do nothing after Leave.
//
// Locks: mu_ may be held over StartRead, StartWrite and Finish, which never run a reaction inline for such reactors;
// holding it is what keeps them before Finish. The engine is never called under mu_.
class WorkerStream final : public grpc::ServerBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage>,
                           public WorkerLink,
                           public std::enable_shared_from_this<WorkerStream> {
 public:
  WorkerStream(Engine& engine, std::shared_ptr<WorkerStreams> streams, grpc::CallbackServerContext* context)
      : engine_(engine), streams_(std::move(streams)), context_(context) {}

  void Start() {
    self_ = shared_from_this();
    if (absl::Status full = streams_->Add(self_); !full.ok()) return Leave(full);
    std::lock_guard<std::mutex> lock(mu_);
    if (!leaving_) StartRead(&in_);
  }

  void Send(v1::CoordinatorMessage message) override {
    auto keep = shared_from_this();
    const std::size_t bytes = message.ByteSizeLong();
    {
      std::lock_guard<std::mutex> lock(mu_);
      if (leaving_) return;
      if (queue_.size() < kMaxQueuedMessages && queued_bytes_ + bytes <= kMaxQueuedBytes) {
        queued_bytes_ += bytes;
        queue_.push_back(std::move(message));
        WriteNextLocked();
        return;
      }
      // The write in flight will not end by itself: the worker does not read.
      if (!done_) context_->TryCancel();
    }
    Leave(absl::ResourceExhaustedError("the worker does not read what it is sent; connect again"));
  }

  void Close(absl::Status reason) override { Leave(std::move(reason)); }

 private:
  void OnReadDone(bool ok) override {
    auto keep = shared_from_this();
    if (!ok)
      return Leave(absl::OkStatus());  // the worker said goodbye, or is gone: Finish's status then reaches nobody
    if (!session_known_) {
      if (!in_.has_hello()) return Leave(absl::InvalidArgumentError("a worker's first message must be hello"));
      if (absl::Status bad = ValidateHello(in_.hello()); !bad.ok()) return Leave(bad);
      const uint64_t session = engine_.WorkerConnected(std::move(*in_.mutable_hello()), shared_from_this());
      bool left;
      {
        std::lock_guard<std::mutex> lock(mu_);
        session_ = session;
        session_known_ = true;
        left = leaving_;
      }
      if (left) return engine_.WorkerClosed(session);  // closed before the session had a number
    } else {
      if (in_.has_hello()) return Leave(absl::InvalidArgumentError("a worker says hello once"));
      if (in_.body_case() != v1::WorkerMessage::BODY_NOT_SET) engine_.WorkerSaid(session_, std::move(in_));
    }
    in_.Clear();
    if (++unconfirmed_ < kReadCredit) return ReadNext();
    unconfirmed_ = 0;
    engine_.GetFarmInfo([keep](const absl::StatusOr<v1::FarmInfo>&) { keep->ReadNext(); });
  }

  void OnWriteDone(bool ok) override {
    auto keep = shared_from_this();
    {
      std::lock_guard<std::mutex> lock(mu_);
      writing_ = false;
      out_.Clear();
      if (leaving_) return FinishLocked();
      if (ok) return WriteNextLocked();
    }
    Leave(absl::UnavailableError("the stream broke"));
  }

  void OnDone() override {
    std::shared_ptr<WorkerStream> self;
    streams_->Remove(this);
    std::lock_guard<std::mutex> lock(mu_);
    done_ = true;
    self = std::move(self_);
    // `self` outlives `lock`: declared first, destroyed last.
  }

  void ReadNext() {
    std::lock_guard<std::mutex> lock(mu_);
    if (!leaving_) StartRead(&in_);
  }

  void WriteNextLocked() {
    if (writing_ || queue_.empty()) return;
    writing_ = true;
    out_ = std::move(queue_.front());
    queue_.pop_front();
    queued_bytes_ -= out_.ByteSizeLong();
    StartWrite(&out_);
  }

  // First call wins.
  void Leave(absl::Status reason) {
    auto keep = shared_from_this();
    bool tell;
    uint64_t session;
    {
      std::lock_guard<std::mutex> lock(mu_);
      if (leaving_) return;
      leaving_ = true;
      reason_ = std::move(reason);
      // The write in flight must end first. What is queued behind it is dropped: acks and revocations are said again
      // when the worker is back.
      if (!writing_) FinishLocked();
      tell = session_known_;
      session = session_;
    }
    if (tell) engine_.WorkerClosed(session);
  }

  void FinishLocked() {
    if (finished_) return;
    finished_ = true;
    queue_.clear();
    Finish(rpc::ToGrpc(reason_));
  }

  Engine& engine_;
  const std::shared_ptr<WorkerStreams> streams_;
  grpc::CallbackServerContext* const context_;  // valid until OnDone
  v1::WorkerMessage in_;                        // owned by the read in flight, else by the one reaction that runs
  int unconfirmed_ = 0;                         // likewise

  std::mutex mu_;
  std::deque<v1::CoordinatorMessage> queue_;
  std::size_t queued_bytes_ = 0;
  v1::CoordinatorMessage out_;
  bool writing_ = false;
  bool leaving_ = false;
  bool finished_ = false;
  bool done_ = false;
  absl::Status reason_;
  // Written by the first reaction under mu_; reactions to reads follow one another and may look without it.
  bool session_known_ = false;
  uint64_t session_ = 0;
  std::shared_ptr<WorkerStream> self_;
};

absl::Status WorkerStreams::Add(const std::shared_ptr<WorkerStream>& stream) {
  std::lock_guard<std::mutex> lock(mu_);
  if (!closed_.ok()) return closed_;
  if (open_.size() >= kMaxStreams) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the coordinator has ", kMaxStreams, " workers and takes no more"));
  }
  open_.emplace(stream.get(), stream);
  return absl::OkStatus();
}

void WorkerStreams::Remove(WorkerStream* stream) {
  std::lock_guard<std::mutex> lock(mu_);
  open_.erase(stream);
}

void WorkerStreams::CloseAll(const absl::Status& reason) {
  std::vector<std::shared_ptr<WorkerStream>> open;
  {
    std::lock_guard<std::mutex> lock(mu_);
    closed_ = reason;
    for (auto& [pointer, weak] : open_) {
      if (auto stream = weak.lock()) open.push_back(std::move(stream));
    }
  }
  for (auto& stream : open) stream->Close(reason);
}

grpc::ServerBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage>* FarmService::Connect(
    grpc::CallbackServerContext* context) {
  auto stream = std::make_shared<WorkerStream>(engine_, streams_, context);
  stream->Start();
  return stream.get();
}

grpc::ServerUnaryReactor* FarmService::ListWorkers(grpc::CallbackServerContext* context, const v1::ListWorkersRequest*,
                                                   v1::ListWorkersResponse* response) {
  return Answer(context, response, [&](auto reply) { engine_.ListWorkers(std::move(reply)); });
}

grpc::ServerUnaryReactor* FarmService::GetFarmInfo(grpc::CallbackServerContext* context, const v1::GetFarmInfoRequest*,
                                                   v1::FarmInfo* response) {
  return Answer(context, response, [&](auto reply) { engine_.GetFarmInfo(std::move(reply)); });
}

// ------------------------------------------------------------------------------------------------------------ services

struct Services::Impl {
  explicit Impl(Engine& engine) : jobs(engine), bank(engine), farm(engine) {}
  JobsService jobs;
  BankService bank;
  FarmService farm;
};

Services::Services(Engine& engine) : impl_(std::make_unique<Impl>(engine)) {}
Services::~Services() = default;
std::vector<grpc::Service*> Services::all() const { return {&impl_->jobs, &impl_->bank, &impl_->farm}; }
void Services::CloseWorkers(const absl::Status& reason) { impl_->farm.CloseWorkers(reason); }

}  // namespace grove::coordinator
