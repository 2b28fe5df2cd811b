#include "coordinator/rpc/client_services.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/rpc/attached.h"
#include "coordinator/rpc/paged_writer.h"
#include "coordinator/rpc/reply.h"
#include "coordinator/rpc/validate.h"

namespace grove::coordinator {
namespace {

// Items asked of the engine at once. An event or a node without logs is 1 to 20 KiB, so that a reader that stands still
// holds about 1 MiB at most, and a fast one is not slowed by a turn of the engine per item.
constexpr int kPageItems = 64;

// Chunks of an artifact: larger than a TCP window gains nothing, smaller costs calls.
constexpr std::size_t kChunkBytes = std::size_t{256} << 10;

class WatchWriter final : public PagedWriter<v1::Event> {
 public:
  WatchWriter(Engine& engine, std::string job, uint64_t after_seq, bool with_progress)
      : engine_(engine), job_(std::move(job)), after_seq_(after_seq), progress_(with_progress ? 0 : -1) {}

 private:
  void Ask() override {
    auto self = std::static_pointer_cast<WatchWriter>(shared_from_this());
    uint64_t turn, after_seq;
    int64_t progress;
    {
      std::lock_guard<std::mutex> lock(cursor_mu_);
      turn = ++turn_;
      after_seq = after_seq_;
      progress = progress_;
    }
    const uint64_t ticket =
        engine_.NextEvents(job_, after_seq, progress, kPageItems, [self](absl::StatusOr<EventBatch> batch) {
          {
            std::lock_guard<std::mutex> lock(self->cursor_mu_);
            ++self->answered_;
            self->ticket_.reset();
            if (batch.ok()) {
              self->after_seq_ = batch->next_after_seq;
              if (self->progress_ >= 0) self->progress_ = static_cast<int64_t>(batch->next_progress);
            }
          }
          if (!batch.ok()) return self->Deliver(ForClient(batch.status()), {}, true);
          self->Deliver(absl::OkStatus(), std::move(batch->events), batch->ended);
        });
    {
      // By now this turn may have been answered and even the next one asked.
      std::lock_guard<std::mutex> lock(cursor_mu_);
      if (answered_ >= turn) return;
      if (!abandoned_) {
        ticket_ = ticket;
        return;
      }
    }
    engine_.CancelWait(ticket);
  }

  void AbandonAsk() override {
    std::optional<uint64_t> ticket;
    {
      std::lock_guard<std::mutex> lock(cursor_mu_);
      abandoned_ = true;  // Ask sees it when the ticket is not known yet
      ticket = std::exchange(ticket_, std::nullopt);
    }
    if (ticket.has_value()) engine_.CancelWait(*ticket);
  }

  Engine& engine_;
  const std::string job_;
  std::mutex cursor_mu_;
  uint64_t after_seq_;
  int64_t progress_;                // < 0: no progress events
  uint64_t turn_ = 0;               // asks made
  uint64_t answered_ = 0;           // asks answered: turn_ or turn_ - 1
  std::optional<uint64_t> ticket_;  // of the turn that waits
  bool abandoned_ = false;
};

class TreeWriter final : public PagedWriter<v1::TreeNode> {
 public:
  TreeWriter(Engine& engine, std::string job) : engine_(engine), job_(std::move(job)) {}

 private:
  void Ask() override {
    auto self = std::static_pointer_cast<TreeWriter>(shared_from_this());
    engine_.GetTree(job_, offset_, kPageItems, [self](absl::StatusOr<std::vector<v1::TreeNode>> page) {
      if (!page.ok()) return self->Deliver(ForClient(page.status()), {}, true);
      self->offset_ += static_cast<int64_t>(page->size());
      const bool last = page->empty();
      self->Deliver(absl::OkStatus(), *std::move(page), last);
    });
  }

  Engine& engine_;
  const std::string job_;
  int64_t offset_ = 0;  // one page is asked for at a time, so no lock
};

class ArtifactWriter final : public PagedWriter<v1::ArtifactChunk> {
 public:
  ArtifactWriter(Engine& engine, std::string sha256) : engine_(engine), sha256_(std::move(sha256)) {}

 private:
  void Ask() override {
    if (!fetched_) {
      auto self = std::static_pointer_cast<ArtifactWriter>(shared_from_this());
      engine_.GetArtifact(sha256_, [self](absl::StatusOr<std::string> content) {
        if (!content.ok()) return self->Deliver(ForClient(content.status()), {}, true);
        self->content_ = *std::move(content);
        self->fetched_ = true;
        self->DeliverNext();
      });
      return;
    }
    DeliverNext();
  }

  void DeliverNext() {
    std::vector<v1::ArtifactChunk> page(1);
    page[0].set_total_bytes(static_cast<int64_t>(content_.size()));
    page[0].set_data(content_.substr(offset_, kChunkBytes));
    offset_ = std::min(content_.size(), offset_ + kChunkBytes);
    Deliver(absl::OkStatus(), std::move(page), offset_ == content_.size());
  }

  Engine& engine_;
  const std::string sha256_;
  bool fetched_ = false;
  std::string content_;
  std::size_t offset_ = 0;
};

// A stream that ends at once.
template <typename T>
class RefusedWriter final : public PagedWriter<T> {
 public:
  explicit RefusedWriter(absl::Status status) : status_(std::move(status)) {}

 private:
  void Ask() override { this->Deliver(status_, {}, true); }
  absl::Status status_;
};

template <typename T>
grpc::ServerWriteReactor<T>* Run(std::shared_ptr<PagedWriter<T>> writer) {
  writer->Start();
  return writer.get();
}

template <typename T>
grpc::ServerWriteReactor<T>* RefuseStream(absl::Status status) {
  return Run<T>(std::make_shared<RefusedWriter<T>>(std::move(status)));
}

}  // namespace

grpc::ServerUnaryReactor* JobsService::SubmitJob(grpc::CallbackServerContext* context,
                                                 const v1::SubmitJobRequest* request, v1::SubmitJobResponse* response) {
  if (absl::Status bad = ValidateSubmit(*request); !bad.ok()) return Refuse(context, bad);
  return Answer(context, response, [&](auto reply) { engine_.SubmitJob(*request, std::move(reply)); });
}

grpc::ServerUnaryReactor* JobsService::GetJob(grpc::CallbackServerContext* context, const v1::GetJobRequest* request,
                                              v1::Job* response) {
  if (absl::Status bad = ValidateJobId(request->id()); !bad.ok()) return Refuse(context, bad);
  return Answer(context, response, [&](auto reply) { engine_.GetJob(request->id(), std::move(reply)); });
}

grpc::ServerUnaryReactor* JobsService::ListJobs(grpc::CallbackServerContext* context,
                                                const v1::ListJobsRequest* request, v1::ListJobsResponse* response) {
  if (absl::Status bad = ValidateListJobs(*request); !bad.ok()) return Refuse(context, bad);
  return Answer(context, response, [&](auto reply) { engine_.ListJobs(*request, std::move(reply)); });
}

grpc::ServerUnaryReactor* JobsService::CancelJob(grpc::CallbackServerContext* context,
                                                 const v1::CancelJobRequest* request, v1::Job* response) {
  if (absl::Status bad = ValidateJobId(request->id()); !bad.ok()) return Refuse(context, bad);
  v1::CancelJobRequest bounded = *request;
  bounded.set_reason(rpc::BoundedMessage(request->reason(), 1024));
  return Answer(context, response, [&](auto reply) { engine_.CancelJob(std::move(bounded), std::move(reply)); });
}

grpc::ServerUnaryReactor* JobsService::ResumeJob(grpc::CallbackServerContext* context,
                                                 const v1::ResumeJobRequest* request, v1::Job* response) {
  if (absl::Status bad = ValidateResume(*request); !bad.ok()) return Refuse(context, bad);
  return Answer(context, response, [&](auto reply) { engine_.ResumeJob(*request, std::move(reply)); });
}

grpc::ServerUnaryReactor* JobsService::GetNode(grpc::CallbackServerContext* context, const v1::GetNodeRequest* request,
                                               v1::TreeNode* response) {
  if (absl::Status bad = ValidateNodeId(request->id()); !bad.ok()) return Refuse(context, bad);
  return Answer(context, response, [&](auto reply) { engine_.GetNode(request->id(), std::move(reply)); });
}

grpc::ServerWriteReactor<v1::Event>* JobsService::WatchJob(grpc::CallbackServerContext* context,
                                                           const v1::WatchJobRequest* request) {
  if (absl::Status bad = ValidateJobId(request->id()); !bad.ok()) return RefuseStream<v1::Event>(bad);
  auto writer = std::make_shared<WatchWriter>(engine_, request->id(), request->after_seq(), request->with_progress());
  // Sent at once, so that a watcher of a quiet job knows that it is attached.
  context->AddInitialMetadata(std::string(rpc::kAttachedMetadata), "1");
  writer->StartSendInitialMetadata();
  return Run<v1::Event>(std::move(writer));
}

grpc::ServerWriteReactor<v1::TreeNode>* JobsService::GetTree(grpc::CallbackServerContext*,
                                                             const v1::GetTreeRequest* request) {
  if (absl::Status bad = ValidateJobId(request->id()); !bad.ok()) return RefuseStream<v1::TreeNode>(bad);
  return Run<v1::TreeNode>(std::make_shared<TreeWriter>(engine_, request->id()));
}

grpc::ServerWriteReactor<v1::ArtifactChunk>* JobsService::GetArtifact(grpc::CallbackServerContext*,
                                                                      const v1::GetArtifactRequest* request) {
  if (absl::Status bad = ValidateSha256(request->sha256()); !bad.ok()) return RefuseStream<v1::ArtifactChunk>(bad);
  return Run<v1::ArtifactChunk>(std::make_shared<ArtifactWriter>(engine_, request->sha256()));
}

grpc::ServerUnaryReactor* BankService::ListBank(grpc::CallbackServerContext* context,
                                                const v1::ListBankRequest* request, v1::ListBankResponse* response) {
  if (request->operation().size() > kMaxNameBytes) {
    return Refuse(context, absl::InvalidArgumentError("operation is longer than any operation's name"));
  }
  return Answer(context, response, [&](auto reply) { engine_.ListBank(*request, std::move(reply)); });
}

grpc::ServerUnaryReactor* BankService::GetBankEntry(grpc::CallbackServerContext* context,
                                                    const v1::GetBankEntryRequest* request, v1::BankEntry* response) {
  if (absl::Status bad = ValidateBankId(request->id()); !bad.ok()) return Refuse(context, bad);
  return Answer(context, response, [&](auto reply) { engine_.GetBankEntry(request->id(), std::move(reply)); });
}

grpc::ServerUnaryReactor* BankService::AddBankEntry(grpc::CallbackServerContext* context,
                                                    const v1::AddBankEntryRequest* request, v1::BankEntry* response) {
  if (absl::Status bad = ValidateAddBankEntry(*request); !bad.ok()) return Refuse(context, bad);
  return Answer(context, response, [&](auto reply) { engine_.AddBankEntry(*request, std::move(reply)); });
}

grpc::ServerUnaryReactor* BankService::RemoveBankEntry(grpc::CallbackServerContext* context,
                                                       const v1::RemoveBankEntryRequest* request,
                                                       v1::RemoveBankEntryResponse* response) {
  if (absl::Status bad = ValidateBankId(request->id()); !bad.ok()) return Refuse(context, bad);
  return Answer(context, response, [&](auto reply) { engine_.RemoveBankEntry(request->id(), std::move(reply)); });
}

}  // namespace grove::coordinator
