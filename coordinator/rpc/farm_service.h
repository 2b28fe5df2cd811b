// Farm: the streams of the workers, and what clients ask about them.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "absl/status/status.h"
#include "coordinator/engine/engine.h"
#include "grove/v1/services.grpc.pb.h"

namespace grove::coordinator {

class WorkerStream;

// The open streams. Shared with each of them, because a stream may end after the service is gone. Thread-safe.
class WorkerStreams {
 public:
  // Streams at once: a farm of this design has tens of workers; the bound is against a client that opens them in a
  // loop.
  static constexpr std::size_t kMaxStreams = 4096;

  absl::Status Add(const std::shared_ptr<WorkerStream>& stream);
  void Remove(WorkerStream* stream);
  void CloseAll(const absl::Status& reason);  // for good

 private:
  std::mutex mu_;
  std::unordered_map<WorkerStream*, std::weak_ptr<WorkerStream>> open_;
  absl::Status closed_;  // not OK: no new ones
};

// Thread-safe; the engine must outlive it.
class FarmService final : public v1::Farm::CallbackService {
 public:
  explicit FarmService(Engine& engine) : engine_(engine), streams_(std::make_shared<WorkerStreams>()) {}

  grpc::ServerBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage>* Connect(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* ListWorkers(grpc::CallbackServerContext* context, const v1::ListWorkersRequest* request,
                                        v1::ListWorkersResponse* response) override;
  grpc::ServerUnaryReactor* GetFarmInfo(grpc::CallbackServerContext* context, const v1::GetFarmInfoRequest* request,
                                        v1::FarmInfo* response) override;

  void CloseWorkers(const absl::Status& reason) { streams_->CloseAll(reason); }

 private:
  Engine& engine_;
  std::shared_ptr<WorkerStreams> streams_;
};

}  // namespace grove::coordinator
