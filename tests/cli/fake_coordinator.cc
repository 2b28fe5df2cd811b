#include "tests/cli/fake_coordinator.h"

#include <grpcpp/grpcpp.h>

#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/rpc/status.h"
#include "grove/v1/services.grpc.pb.h"

namespace grove::cli {

struct FakeCoordinator::Impl {
  mutable absl::Mutex mutex;
  v1::Job job;
  std::vector<v1::Event> events;
  std::vector<v1::TreeNode> nodes;
  int cut_after = 0;
  bool hold_open = false;
  bool stopping = false;
  int fail_next = 0;
  absl::Status failure;
  std::vector<v1::SubmitJobRequest> submitted;
  std::map<std::string, v1::SubmitJobResponse> by_key;
  std::vector<uint64_t> watched_from;
  std::map<std::string, int> calls;
  int port = 0;
  std::string address;
  std::unique_ptr<grpc::Server> server;

  // Counts the call; the error it is to be answered with, if any.
  grpc::Status Enter(const std::string& method) {
    absl::MutexLock lock(&mutex);
    ++calls[method];
    if (fail_next > 0) {
      --fail_next;
      return rpc::ToGrpc(failure);
    }
    return grpc::Status::OK;
  }

  struct JobsService : v1::Jobs::Service {
    Impl* self;
    grpc::Status SubmitJob(grpc::ServerContext*, const v1::SubmitJobRequest* request,
                           v1::SubmitJobResponse* response) override {
      {
        // Stored before the call may fail: a lost answer, which a retry must survive.
        absl::MutexLock lock(&self->mutex);
        auto [entry, fresh] = self->by_key.emplace(request->idempotency_key(), v1::SubmitJobResponse());
        if (fresh) {
          self->submitted.push_back(*request);
          *entry->second.mutable_job() = self->job;
        } else {
          entry->second.set_existed(true);
        }
        *response = entry->second;
      }
      return self->Enter("SubmitJob");
    }
    grpc::Status GetJob(grpc::ServerContext*, const v1::GetJobRequest* request, v1::Job* response) override {
      if (grpc::Status status = self->Enter("GetJob"); !status.ok()) return status;
      absl::MutexLock lock(&self->mutex);
      if (request->id() != self->job.id()) {
        return {grpc::StatusCode::NOT_FOUND,
                absl::StrCat("there is no job ", request->id(), "; `grove jobs` lists them")};
      }
      *response = self->job;
      return grpc::Status::OK;
    }
    grpc::Status ListJobs(grpc::ServerContext*, const v1::ListJobsRequest*, v1::ListJobsResponse* response) override {
      if (grpc::Status status = self->Enter("ListJobs"); !status.ok()) return status;
      absl::MutexLock lock(&self->mutex);
      *response->add_jobs() = self->job;
      return grpc::Status::OK;
    }
    grpc::Status CancelJob(grpc::ServerContext*, const v1::CancelJobRequest* request, v1::Job* response) override {
      if (grpc::Status status = self->Enter("CancelJob"); !status.ok()) return status;
      absl::MutexLock lock(&self->mutex);
      self->job.set_state(v1::JOB_STATE_CANCELLED);
      self->job.set_state_reason(request->reason());
      *response = self->job;
      return grpc::Status::OK;
    }
    grpc::Status ResumeJob(grpc::ServerContext*, const v1::ResumeJobRequest*, v1::Job* response) override {
      if (grpc::Status status = self->Enter("ResumeJob"); !status.ok()) return status;
      absl::MutexLock lock(&self->mutex);
      *response = self->job;
      return grpc::Status::OK;
    }
    grpc::Status WatchJob(grpc::ServerContext* context, const v1::WatchJobRequest* request,
                          grpc::ServerWriter<v1::Event>* writer) override {
      std::vector<v1::Event> to_send;
      int cut = 0;
      {
        absl::MutexLock lock(&self->mutex);
        self->watched_from.push_back(request->after_seq());
        to_send = self->events;
        cut = self->cut_after;
      }
      int sent = 0;
      for (const v1::Event& event : to_send) {
        if (event.seq() != 0 && event.seq() <= request->after_seq()) continue;
        if (event.seq() == 0 && !request->with_progress()) continue;
        if (cut > 0 && sent == cut) return {grpc::StatusCode::UNAVAILABLE, "cut"};
        if (!writer->Write(event)) return grpc::Status::CANCELLED;
        ++sent;
      }
      for (;;) {
        absl::MutexLock lock(&self->mutex);
        if (!self->hold_open || self->stopping || context->IsCancelled()) break;
        self->mutex.AwaitWithTimeout(absl::Condition(
                                         +[](Impl* impl) { return !impl->hold_open || impl->stopping; }, self),
                                     absl::Milliseconds(20));
      }
      absl::MutexLock lock(&self->mutex);
      if (self->stopping) return {grpc::StatusCode::UNAVAILABLE, "stopping"};
      return grpc::Status::OK;
    }
    grpc::Status GetTree(grpc::ServerContext*, const v1::GetTreeRequest*,
                         grpc::ServerWriter<v1::TreeNode>* writer) override {
      if (grpc::Status status = self->Enter("GetTree"); !status.ok()) return status;
      absl::MutexLock lock(&self->mutex);
      for (const v1::TreeNode& node : self->nodes) writer->Write(node);
      return grpc::Status::OK;
    }
    grpc::Status GetNode(grpc::ServerContext*, const v1::GetNodeRequest* request, v1::TreeNode* response) override {
      if (grpc::Status status = self->Enter("GetNode"); !status.ok()) return status;
      absl::MutexLock lock(&self->mutex);
      for (const v1::TreeNode& node : self->nodes) {
        if ((node.has_idea() ? node.idea().id() : node.kernel().id()) == request->id()) {
          *response = node;
          return grpc::Status::OK;
        }
      }
      return {grpc::StatusCode::NOT_FOUND, absl::StrCat("there is no node ", request->id())};
    }
    grpc::Status GetArtifact(grpc::ServerContext*, const v1::GetArtifactRequest* request,
                             grpc::ServerWriter<v1::ArtifactChunk>* writer) override {
      if (grpc::Status status = self->Enter("GetArtifact"); !status.ok()) return status;
      for (const char* part : {"{\"exchange\":", "1}\n"}) {
        v1::ArtifactChunk chunk;
        chunk.set_data(part);
        writer->Write(chunk);
      }
      return request->sha256().empty() ? grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "no name") : grpc::Status::OK;
    }
  } jobs;

  struct BankService : v1::Bank::Service {
    Impl* self;
    grpc::Status ListBank(grpc::ServerContext*, const v1::ListBankRequest*, v1::ListBankResponse* response) override {
      if (grpc::Status status = self->Enter("ListBank"); !status.ok()) return status;
      v1::BankEntry* entry = response->add_entries();
      entry->set_id("b-aaaaaaaa");
      entry->set_operation("softmax");
      entry->set_device(v1::DEVICE_KIND_CPU);
      return grpc::Status::OK;
    }
    grpc::Status AddBankEntry(grpc::ServerContext*, const v1::AddBankEntryRequest* request,
                              v1::BankEntry* response) override {
      if (grpc::Status status = self->Enter("AddBankEntry"); !status.ok()) return status;
      *response = request->entry();
      response->set_id("b-bbbbbbbb");
      return grpc::Status::OK;
    }
    grpc::Status RemoveBankEntry(grpc::ServerContext*, const v1::RemoveBankEntryRequest*,
                                 v1::RemoveBankEntryResponse*) override {
      return self->Enter("RemoveBankEntry");
    }
  } bank;

  struct FarmService : v1::Farm::Service {
    Impl* self;
    grpc::Status ListWorkers(grpc::ServerContext*, const v1::ListWorkersRequest*,
                             v1::ListWorkersResponse* response) override {
      if (grpc::Status status = self->Enter("ListWorkers"); !status.ok()) return status;
      v1::WorkerStatus* worker = response->add_workers();
      worker->set_worker_id("w-1");
      worker->set_connected(true);
      return grpc::Status::OK;
    }
    grpc::Status GetFarmInfo(grpc::ServerContext*, const v1::GetFarmInfoRequest*, v1::FarmInfo* response) override {
      if (grpc::Status status = self->Enter("GetFarmInfo"); !status.ok()) return status;
      response->set_version("0.1.0");
      response->set_data_dir("/srv/fake");
      return grpc::Status::OK;
    }
  } farm;

  void Start() {
    grpc::ServerBuilder builder;
    int bound = 0;
    builder.AddListeningPort(absl::StrCat("127.0.0.1:", port), grpc::InsecureServerCredentials(), &bound);
    builder.RegisterService(&jobs);
    builder.RegisterService(&bank);
    builder.RegisterService(&farm);
    server = builder.BuildAndStart();
    port = bound;
    address = absl::StrCat("127.0.0.1:", port);
  }
};

FakeCoordinator::FakeCoordinator() : impl_(std::make_unique<Impl>()) {
  impl_->jobs.self = impl_->bank.self = impl_->farm.self = impl_.get();
  impl_->Start();
}

FakeCoordinator::~FakeCoordinator() { Stop(); }

const std::string& FakeCoordinator::address() const { return impl_->address; }

void FakeCoordinator::SetJob(v1::Job job, std::vector<v1::Event> events, std::vector<v1::TreeNode> nodes) {
  absl::MutexLock lock(&impl_->mutex);
  impl_->job = std::move(job);
  impl_->events = std::move(events);
  impl_->nodes = std::move(nodes);
}

void FakeCoordinator::CutWatchAfter(int events) {
  absl::MutexLock lock(&impl_->mutex);
  impl_->cut_after = events;
}

void FakeCoordinator::HoldWatchOpen(bool hold) {
  absl::MutexLock lock(&impl_->mutex);
  impl_->hold_open = hold;
}

void FakeCoordinator::FailNext(int count, absl::Status error) {
  absl::MutexLock lock(&impl_->mutex);
  impl_->fail_next = count;
  impl_->failure = std::move(error);
}

void FakeCoordinator::Stop() {
  if (impl_->server == nullptr) return;
  {
    absl::MutexLock lock(&impl_->mutex);
    impl_->stopping = true;
  }
  impl_->server->Shutdown(std::chrono::system_clock::now());
  impl_->server->Wait();
  impl_->server.reset();
}

void FakeCoordinator::Restart() {
  {
    absl::MutexLock lock(&impl_->mutex);
    impl_->stopping = false;
  }
  impl_->Start();
}

std::vector<v1::SubmitJobRequest> FakeCoordinator::submitted() const {
  absl::MutexLock lock(&impl_->mutex);
  return impl_->submitted;
}

std::vector<uint64_t> FakeCoordinator::watched_from() const {
  absl::MutexLock lock(&impl_->mutex);
  return impl_->watched_from;
}

int FakeCoordinator::calls(const std::string& method) const {
  absl::MutexLock lock(&impl_->mutex);
  const auto found = impl_->calls.find(method);
  return found == impl_->calls.end() ? 0 : found->second;
}

bool FakeCoordinator::WaitForWatches(size_t count) const {
  absl::MutexLock lock(&impl_->mutex);
  const auto enough = [this, count]() { return impl_->watched_from.size() >= count; };
  return impl_->mutex.AwaitWithTimeout(absl::Condition(&enough), absl::Seconds(20));
}

}  // namespace grove::cli
