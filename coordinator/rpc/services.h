// The gRPC services over an engine. No gRPC in this header, so that main.cc stays light.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/engine/engine.h"

namespace grpc {
class Service;
}

namespace grove::coordinator {

// Jobs, Bank and Farm. Thread-safe. Callback API throughout: no reaction blocks, and all waiting is the engine's.
//
// Order at the end: Engine::Drain, CloseWorkers, Engine::Stop (waiting calls are answered), Server::Shutdown, then
// this.
class Services {
 public:
  // `engine` must outlive this object and the server that it is registered with.
  explicit Services(Engine& engine);
  ~Services();
  std::vector<grpc::Service*> all() const;

  // Ends every worker's stream with `reason` and admits no new one. The workers keep what they run and come back.
  void CloseWorkers(const absl::Status& reason);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace grove::coordinator
