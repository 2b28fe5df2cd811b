#include "clients/cpp/client.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/ids.h"
#include "common/rpc/attached.h"
#include "common/rpc/channel.h"
#include "common/rpc/deadlines.h"
#include "common/rpc/grpc_log.h"
#include "common/rpc/status.h"
#include "grove/v1/services.grpc.pb.h"

namespace grove::client {
namespace {

// Back-off between attempts: 100 ms is below what a person notices, 2 s keeps a thousand waiting clients harmless.
constexpr absl::Duration kFirstBackoff = absl::Milliseconds(100);
constexpr absl::Duration kLastBackoff = absl::Seconds(2);

// A watch is attached anew after an hour, so that even a stream that nobody ends has a deadline.
constexpr absl::Duration kWatchDeadline = absl::Hours(1);
// A coordinator that greets and then ends the stream sooner than this has not come back: it is draining.
constexpr absl::Duration kSettled = absl::Seconds(1);

// How a coordinator begins what it says with UNAVAILABLE (its store cannot be written, it drains, it shuts down); what
// gRPC says of a connection begins otherwise.
constexpr absl::string_view kAnswerPrefix = "the coordinator";
constexpr absl::string_view kAnsweredPayload = "grove/answered";

// Registers a call with the cancellation for as long as the call lives.
class CancelScope {
 public:
  CancelScope(Cancellation* cancellation, grpc::ClientContext* context) : cancellation_(cancellation) {
    if (cancellation_ != nullptr) ticket_ = cancellation_->Register([context] { context->TryCancel(); });
  }
  ~CancelScope() {
    if (cancellation_ != nullptr) cancellation_->Unregister(ticket_);
  }
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;

 private:
  Cancellation* cancellation_;
  uint64_t ticket_ = 0;
};

bool IsCancelled(const Cancellation* cancellation) { return cancellation != nullptr && cancellation->cancelled(); }

// Sleeps unless cancelled; true when cancelled.
bool Pause(const Cancellation* cancellation, absl::Duration duration) {
  if (cancellation != nullptr) return cancellation->WaitFor(duration);
  absl::SleepFor(duration);
  return false;
}

}  // namespace

bool IsAnswered(const absl::Status& status) { return status.GetPayload(kAnsweredPayload).has_value(); }

bool IsUnreachable(const absl::Status& status) {
  if (IsAnswered(status)) return false;
  return status.code() == absl::StatusCode::kUnavailable || status.code() == absl::StatusCode::kDeadlineExceeded ||
         status.code() == absl::StatusCode::kUnauthenticated;
}

std::string GrpcVersion() { return grpc::Version(); }

struct Client::Impl {
  ClientOptions options;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::Jobs::Stub> jobs;
  std::unique_ptr<v1::Bank::Stub> bank;
  std::unique_ptr<v1::Farm::Stub> farm;

  absl::Status Convert(const grpc::Status& status, const Cancellation* cancellation) const {
    if (status.ok()) return absl::OkStatus();
    if (IsCancelled(cancellation)) return absl::CancelledError("interrupted");
    const absl::StatusCode code = rpc::FromGrpc(status).code();
    std::string message = status.error_message();
    if (code == absl::StatusCode::kUnavailable && absl::StartsWith(message, kAnswerPrefix)) {
      absl::Status answered(code, message);
      answered.SetPayload(kAnsweredPayload, absl::Cord());
      return answered;
    }
    if (code == absl::StatusCode::kUnavailable) {
      message = absl::StrCat("the coordinator at ", options.address,
                             " cannot be reached; is it running, and is the address right? (", message, ")");
      // What a TLS port does to plain text and to a client without a certificate of its authority; gRPC says no more.
      if (absl::StrContains(message, "failed to connect") && absl::StrContains(message, "Socket closed")) {
        absl::StrAppend(&message, options.tls_ca.empty()
                                      ? "; a coordinator that serves TLS closes such connections: give --tls-ca"
                                      : "; it may want a certificate of its authority: give --tls-cert and --tls-key");
      }
      if (absl::StrContains(message, "is not in peer certificate")) {
        absl::StrAppend(&message,
                        "; its certificate names other hosts: use one of those as the address, or issue it anew with "
                        "`grove certs issue NAME --host HOST`");
      }
    } else if (code == absl::StatusCode::kDeadlineExceeded) {
      message = absl::StrCat("the coordinator at ", options.address, " did not answer in time");
    } else if (code == absl::StatusCode::kUnimplemented) {
      message = absl::StrCat("what answers at ", options.address,
                             " does not know this call; is it a grove-coordinator of this version? (", message, ")");
    }
    return absl::Status(code, message);
  }

  // One unary call. `repeatable` calls are tried again on UNAVAILABLE while patience lasts.
  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Unary(Stub* stub,
                                 grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                                 const Request& request, const CallOptions& call, bool repeatable) {
    const absl::Time give_up = absl::Now() + call.patience;
    absl::Duration backoff = kFirstBackoff;
    for (;;) {
      if (IsCancelled(call.cancellation)) return absl::CancelledError("interrupted");
      grpc::ClientContext context;
      context.set_deadline(absl::ToChronoTime(absl::Now() + call.timeout));
      Response response;
      absl::Status status;
      {
        CancelScope scope(call.cancellation, &context);
        status = Convert((stub->*method)(&context, request, &response), call.cancellation);
      }
      if (status.ok()) return response;
      if (!repeatable || status.code() != absl::StatusCode::kUnavailable || absl::Now() + backoff > give_up) {
        return status;
      }
      if (Pause(call.cancellation, backoff)) return absl::CancelledError("interrupted");
      backoff = std::min(backoff * 2, kLastBackoff);
    }
  }

  // One server stream read to its end, tried again from the start as Unary does. `reset` drops what came before.
  template <typename Item, typename Start>
  absl::Status ReadAll(const CallOptions& call, const Start& start, const std::function<void()>& reset,
                       const std::function<absl::Status(Item&&)>& take) {
    const absl::Time give_up = absl::Now() + call.patience;
    absl::Duration backoff = kFirstBackoff;
    for (;;) {
      if (IsCancelled(call.cancellation)) return absl::CancelledError("interrupted");
      reset();
      grpc::ClientContext context;
      context.set_deadline(absl::ToChronoTime(absl::Now() + call.timeout));
      absl::Status status;
      {
        CancelScope scope(call.cancellation, &context);
        std::unique_ptr<grpc::ClientReader<Item>> reader = start(&context);
        Item item;
        absl::Status refused;
        while (refused.ok() && reader->Read(&item)) refused = take(std::move(item));
        if (!refused.ok()) context.TryCancel();
        const grpc::Status end = reader->Finish();
        status = refused.ok() ? Convert(end, call.cancellation) : refused;
      }
      if (status.ok()) return status;
      if (status.code() != absl::StatusCode::kUnavailable || absl::Now() + backoff > give_up) return status;
      if (Pause(call.cancellation, backoff)) return absl::CancelledError("interrupted");
      backoff = std::min(backoff * 2, kLastBackoff);
    }
  }
};

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::~Client() = default;

absl::StatusOr<std::unique_ptr<Client>> Client::Create(ClientOptions options) {
  rpc::RouteGrpcLog();
  auto impl = std::make_unique<Impl>();
  auto channel = rpc::CreateChannel({.address = options.address,
                                     .tls = {.cert = options.tls_cert, .key = options.tls_key, .ca = options.tls_ca},
                                     .insecure = options.insecure});
  if (!channel.ok()) return channel.status();
  impl->options = std::move(options);
  impl->channel = *std::move(channel);
  impl->jobs = v1::Jobs::NewStub(impl->channel);
  impl->bank = v1::Bank::NewStub(impl->channel);
  impl->farm = v1::Farm::NewStub(impl->channel);
  return std::unique_ptr<Client>(new Client(std::move(impl)));
}

const std::string& Client::address() const { return impl_->options.address; }

std::string Client::NewIdempotencyKey() { return RandomId("c-", 24); }

absl::StatusOr<v1::SubmitJobResponse> Client::SubmitJob(const v1::JobSpec& spec, const std::string& idempotency_key,
                                                        const CallOptions& call) {
  v1::SubmitJobRequest request;
  request.set_idempotency_key(idempotency_key);
  *request.mutable_spec() = spec;
  CallOptions sized = call;
  sized.timeout = std::max(call.timeout, rpc::kSubmitDeadline);
  return impl_->Unary(impl_->jobs.get(), &v1::Jobs::Stub::SubmitJob, request, sized, true);
}

absl::StatusOr<v1::Job> Client::GetJob(const std::string& id, const CallOptions& call) {
  v1::GetJobRequest request;
  request.set_id(id);
  return impl_->Unary(impl_->jobs.get(), &v1::Jobs::Stub::GetJob, request, call, true);
}

absl::StatusOr<v1::ListJobsResponse> Client::ListJobs(const v1::ListJobsRequest& request, const CallOptions& call) {
  return impl_->Unary(impl_->jobs.get(), &v1::Jobs::Stub::ListJobs, request, call, true);
}

absl::StatusOr<v1::Job> Client::CancelJob(const std::string& id, const std::string& reason, const CallOptions& call) {
  v1::CancelJobRequest request;
  request.set_id(id);
  request.set_reason(reason);
  return impl_->Unary(impl_->jobs.get(), &v1::Jobs::Stub::CancelJob, request, call, true);
}

absl::StatusOr<v1::Job> Client::ResumeJob(const v1::ResumeJobRequest& request, const CallOptions& call) {
  return impl_->Unary(impl_->jobs.get(), &v1::Jobs::Stub::ResumeJob, request, call, false);
}

absl::Status Client::WatchJob(const std::string& id, const WatchOptions& options,
                              const std::function<bool(const v1::Event&)>& on_event) {
  uint64_t last_seq = options.after_seq;
  absl::Time gone_since = absl::InfiniteFuture();
  absl::Duration backoff = kFirstBackoff;
  bool detached = false;
  const auto attached = [&] {
    if (!std::exchange(detached, false)) return;
    if (options.on_attached) options.on_attached();
  };
  bool ever_attached = false;
  for (;;) {
    if (IsCancelled(options.cancellation)) return absl::CancelledError("interrupted");
    v1::WatchJobRequest request;
    request.set_id(id);
    request.set_after_seq(last_seq);
    request.set_with_progress(options.with_progress);
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kWatchDeadline));
    bool stopped = false;
    grpc::Status end;
    const auto settled = [&] {
      gone_since = absl::InfiniteFuture();
      backoff = kFirstBackoff;
    };
    {
      CancelScope scope(options.cancellation, &context);
      std::unique_ptr<grpc::ClientReader<v1::Event>> reader = impl_->jobs->WatchJob(&context, request);
      // A job may be quiet for long: that the coordinator is there shows before the first event.
      reader->WaitForInitialMetadata();
      const absl::Time began = absl::Now();
      const bool greeted = context.GetServerInitialMetadata().count(std::string(rpc::kAttachedMetadata)) > 0;
      if (greeted) {
        ever_attached = true;
        attached();
      }
      v1::Event event;
      while (!stopped && reader->Read(&event)) {
        settled();
        ever_attached = true;
        attached();
        if (event.seq() != 0) {
          if (event.seq() <= last_seq) continue;  // a coordinator that repeats itself does not make us do so
          last_seq = event.seq();
        }
        stopped = !on_event(event);
      }
      if (stopped) context.TryCancel();
      end = reader->Finish();
      if (greeted && absl::Now() - began >= kSettled) settled();
    }
    if (stopped) return absl::OkStatus();
    if (end.ok()) return absl::OkStatus();
    if (IsCancelled(options.cancellation)) return absl::CancelledError("interrupted");
    if (end.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) continue;  // our own hour is over
    // A stream that breaks shows as UNAVAILABLE, or as CANCELLED or INTERNAL ("RST_STREAM") when the server was killed
    // with the stream open; none of them is an answer.
    const bool broken = end.error_code() == grpc::StatusCode::UNAVAILABLE ||
                        (ever_attached && (end.error_code() == grpc::StatusCode::CANCELLED ||
                                           end.error_code() == grpc::StatusCode::INTERNAL));
    const absl::Status why = impl_->Convert(end, options.cancellation);
    if (!broken) return why;
    gone_since = std::min(gone_since, absl::Now());
    const absl::Duration left = options.reattach_for - (absl::Now() - gone_since);
    if (left <= absl::ZeroDuration()) {
      return absl::UnavailableError(
          absl::StrCat(why.message(), "; tried to attach again for ", absl::FormatDuration(options.reattach_for)));
    }
    detached = true;
    if (options.on_reattach) options.on_reattach(why, left);
    if (Pause(options.cancellation, std::min(backoff, left))) return absl::CancelledError("interrupted");
    backoff = std::min(backoff * 2, kLastBackoff);
  }
}

absl::StatusOr<std::vector<v1::TreeNode>> Client::GetTree(const std::string& id, const CallOptions& call) {
  v1::GetTreeRequest request;
  request.set_id(id);
  std::vector<v1::TreeNode> nodes;
  CallOptions sized = call;
  sized.timeout = rpc::kTransferDeadline;
  absl::Status status = impl_->ReadAll<v1::TreeNode>(
      sized, [&](grpc::ClientContext* context) { return impl_->jobs->GetTree(context, request); },
      [&] { nodes.clear(); },
      [&](v1::TreeNode&& node) {
        nodes.push_back(std::move(node));
        return absl::OkStatus();
      });
  if (!status.ok()) return status;
  return nodes;
}

absl::StatusOr<v1::TreeNode> Client::GetNode(const std::string& id, const CallOptions& call) {
  v1::GetNodeRequest request;
  request.set_id(id);
  return impl_->Unary(impl_->jobs.get(), &v1::Jobs::Stub::GetNode, request, call, true);
}

absl::StatusOr<std::string> Client::GetArtifact(const std::string& sha256, int64_t max_bytes, const CallOptions& call) {
  v1::GetArtifactRequest request;
  request.set_sha256(sha256);
  std::string data;
  CallOptions sized = call;
  sized.timeout = rpc::kTransferDeadline;
  absl::Status status = impl_->ReadAll<v1::ArtifactChunk>(
      sized, [&](grpc::ClientContext* context) { return impl_->jobs->GetArtifact(context, request); },
      [&] { data.clear(); },
      [&](v1::ArtifactChunk&& chunk) -> absl::Status {
        if (static_cast<int64_t>(data.size() + chunk.data().size()) > max_bytes) {
          return absl::ResourceExhaustedError(
              absl::StrCat("artifact ", sha256, " is larger than ", max_bytes, " bytes"));
        }
        data.append(chunk.data());
        return absl::OkStatus();
      });
  if (!status.ok()) return status;
  return data;
}

absl::StatusOr<v1::ListBankResponse> Client::ListBank(const v1::ListBankRequest& request, const CallOptions& call) {
  return impl_->Unary(impl_->bank.get(), &v1::Bank::Stub::ListBank, request, call, true);
}

absl::StatusOr<v1::BankEntry> Client::GetBankEntry(const std::string& id, const CallOptions& call) {
  v1::GetBankEntryRequest request;
  request.set_id(id);
  return impl_->Unary(impl_->bank.get(), &v1::Bank::Stub::GetBankEntry, request, call, true);
}

absl::StatusOr<v1::BankEntry> Client::AddBankEntry(const v1::AddBankEntryRequest& request, const CallOptions& call) {
  return impl_->Unary(impl_->bank.get(), &v1::Bank::Stub::AddBankEntry, request, call, false);
}

absl::Status Client::RemoveBankEntry(const std::string& id, const CallOptions& call) {
  v1::RemoveBankEntryRequest request;
  request.set_id(id);
  return impl_->Unary(impl_->bank.get(), &v1::Bank::Stub::RemoveBankEntry, request, call, false).status();
}

absl::StatusOr<v1::ListWorkersResponse> Client::ListWorkers(const CallOptions& call) {
  return impl_->Unary(impl_->farm.get(), &v1::Farm::Stub::ListWorkers, v1::ListWorkersRequest(), call, true);
}

absl::StatusOr<v1::FarmInfo> Client::GetFarmInfo(const CallOptions& call) {
  return impl_->Unary(impl_->farm.get(), &v1::Farm::Stub::GetFarmInfo, v1::GetFarmInfoRequest(), call, true);
}

}  // namespace grove::client
