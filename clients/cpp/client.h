// The typed client of a coordinator: jobs, bank and farm.
//
// Every call has a deadline. A call is tried again by itself only where a second one cannot do harm: reads, cancelling,
// and SubmitJob, whose idempotency key makes the second one find the first's job. ResumeJob, AddBankEntry and
// RemoveBankEntry are sent once. A failed call is an absl::Status with the coordinator's own message; UNAVAILABLE and
// DEADLINE_EXCEEDED name the address, so that a person knows what could not be reached.
//
// Thread-safe: several threads may call one Client at once. A call in flight ends early with CANCELLED when the
// Cancellation it was given is cancelled.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "clients/cpp/cancellation.h"
#include "grove/v1/services.pb.h"

namespace grove::client {

struct ClientOptions {
  std::string address;   // host:port or unix:/path
  std::string tls_cert;  // PEM files; a CA alone gives TLS, a certificate and key as well give mutual TLS
  std::string tls_key;
  std::string tls_ca;
  bool insecure = false;  // allows plaintext to an address that is not loopback
};

struct CallOptions {
  // common/rpc/deadlines.h has the reason. Transfers and SubmitJob have their own, longer ones.
  absl::Duration timeout = absl::Seconds(30);
  // How long calls that may be repeated are repeated while the coordinator is unavailable. 2 s cover a restart's gap on
  // a fast machine without making "nothing listens there" slow to hear.
  absl::Duration patience = absl::Seconds(2);
  Cancellation* cancellation = nullptr;  // may be null; outlives the call
};

struct WatchOptions {
  uint64_t after_seq = 0;      // only events after this one
  bool with_progress = false;  // also EvaluationProgress, which has no sequence number and is not repeated
  // How long to go on trying to attach again, counted from when the coordinator went away. 60 s: a coordinator that is
  // restarted by hand or by systemd is back within that.
  absl::Duration reattach_for = absl::Seconds(60);
  Cancellation* cancellation = nullptr;
  // Told before each attempt to attach again: why, and how much patience is left. May be empty.
  std::function<void(const absl::Status& why, absl::Duration left)> on_reattach;
  // Told when the coordinator is there again after on_reattach. May be empty.
  std::function<void()> on_attached;
};

class Client {
 public:
  // Makes the channel; nothing is sent yet. INVALID_ARGUMENT: the address or the TLS files cannot be used, or plaintext
  // was asked for to an address that is not loopback.
  static absl::StatusOr<std::unique_ptr<Client>> Create(ClientOptions options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  const std::string& address() const;

  // A key for SubmitJob: one per job that is meant, kept over every retry of it.
  static std::string NewIdempotencyKey();

  absl::StatusOr<v1::SubmitJobResponse> SubmitJob(const v1::JobSpec& spec, const std::string& idempotency_key,
                                                  const CallOptions& call = {});
  absl::StatusOr<v1::Job> GetJob(const std::string& id, const CallOptions& call = {});
  absl::StatusOr<v1::ListJobsResponse> ListJobs(const v1::ListJobsRequest& request, const CallOptions& call = {});
  absl::StatusOr<v1::Job> CancelJob(const std::string& id, const std::string& reason, const CallOptions& call = {});
  absl::StatusOr<v1::Job> ResumeJob(const v1::ResumeJobRequest& request, const CallOptions& call = {});

  // Calls on_event, on the caller's thread, for each event in order, each journalled event once over however many
  // attachments it takes, and returns OK when the job has ended or on_event returned false. When the coordinator goes
  // away it attaches again from the last sequence number seen, with back-off, for at most reattach_for: then
  // UNAVAILABLE. CANCELLED: by the cancellation. Anything else the coordinator answered (NOT_FOUND, ...) is returned at
  // once.
  absl::Status WatchJob(const std::string& id, const WatchOptions& options,
                        const std::function<bool(const v1::Event&)>& on_event);

  absl::StatusOr<std::vector<v1::TreeNode>> GetTree(const std::string& id, const CallOptions& call = {});
  absl::StatusOr<v1::TreeNode> GetNode(const std::string& id, const CallOptions& call = {});
  // A whole artifact; RESOURCE_EXHAUSTED above max_bytes.
  absl::StatusOr<std::string> GetArtifact(const std::string& sha256, int64_t max_bytes, const CallOptions& call = {});

  absl::StatusOr<v1::ListBankResponse> ListBank(const v1::ListBankRequest& request, const CallOptions& call = {});
  absl::StatusOr<v1::BankEntry> GetBankEntry(const std::string& id, const CallOptions& call = {});
  absl::StatusOr<v1::BankEntry> AddBankEntry(const v1::AddBankEntryRequest& request, const CallOptions& call = {});
  absl::Status RemoveBankEntry(const std::string& id, const CallOptions& call = {});

  absl::StatusOr<v1::ListWorkersResponse> ListWorkers(const CallOptions& call = {});
  absl::StatusOr<v1::FarmInfo> GetFarmInfo(const CallOptions& call = {});

 private:
  struct Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// True where the coordinator itself said UNAVAILABLE: its store cannot be written, or it drains. Its words are the
// message. Such calls are tried again as others are.
bool IsAnswered(const absl::Status& status);

// True where a Status means "the coordinator could not be reached or would not talk to us", as against an answer of
// its.
bool IsUnreachable(const absl::Status& status);

// The version of gRPC that this client was linked with.
std::string GrpcVersion();

}  // namespace grove::client
