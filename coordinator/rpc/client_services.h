// Jobs and Bank: what clients call.
#pragma once

#include "coordinator/engine/engine.h"
#include "grove/v1/services.grpc.pb.h"

namespace grove::coordinator {

// Thread-safe; the engine must outlive it.
class JobsService final : public v1::Jobs::CallbackService {
 public:
  explicit JobsService(Engine& engine) : engine_(engine) {}

  grpc::ServerUnaryReactor* SubmitJob(grpc::CallbackServerContext* context, const v1::SubmitJobRequest* request,
                                      v1::SubmitJobResponse* response) override;
  grpc::ServerUnaryReactor* GetJob(grpc::CallbackServerContext* context, const v1::GetJobRequest* request,
                                   v1::Job* response) override;
  grpc::ServerUnaryReactor* ListJobs(grpc::CallbackServerContext* context, const v1::ListJobsRequest* request,
                                     v1::ListJobsResponse* response) override;
  grpc::ServerUnaryReactor* CancelJob(grpc::CallbackServerContext* context, const v1::CancelJobRequest* request,
                                      v1::Job* response) override;
  grpc::ServerUnaryReactor* ResumeJob(grpc::CallbackServerContext* context, const v1::ResumeJobRequest* request,
                                      v1::Job* response) override;
  grpc::ServerUnaryReactor* GetNode(grpc::CallbackServerContext* context, const v1::GetNodeRequest* request,
                                    v1::TreeNode* response) override;
  grpc::ServerWriteReactor<v1::Event>* WatchJob(grpc::CallbackServerContext* context,
                                                const v1::WatchJobRequest* request) override;
  grpc::ServerWriteReactor<v1::TreeNode>* GetTree(grpc::CallbackServerContext* context,
                                                  const v1::GetTreeRequest* request) override;
  grpc::ServerWriteReactor<v1::ArtifactChunk>* GetArtifact(grpc::CallbackServerContext* context,
                                                           const v1::GetArtifactRequest* request) override;

 private:
  Engine& engine_;
};

// Thread-safe; the engine must outlive it.
class BankService final : public v1::Bank::CallbackService {
 public:
  explicit BankService(Engine& engine) : engine_(engine) {}

  grpc::ServerUnaryReactor* ListBank(grpc::CallbackServerContext* context, const v1::ListBankRequest* request,
                                     v1::ListBankResponse* response) override;
  grpc::ServerUnaryReactor* GetBankEntry(grpc::CallbackServerContext* context, const v1::GetBankEntryRequest* request,
                                         v1::BankEntry* response) override;
  grpc::ServerUnaryReactor* AddBankEntry(grpc::CallbackServerContext* context, const v1::AddBankEntryRequest* request,
                                         v1::BankEntry* response) override;
  grpc::ServerUnaryReactor* RemoveBankEntry(grpc::CallbackServerContext* context,
                                            const v1::RemoveBankEntryRequest* request,
                                            v1::RemoveBankEntryResponse* response) override;

 private:
  Engine& engine_;
};

}  // namespace grove::coordinator
