// A served FakeEngine on a free loopback port.
#pragma once

#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <string>

#include "common/rpc/server.h"
#include "coordinator/rpc/services.h"
#include "tests/rpc/fake_engine.h"

namespace grove::testing {

class ServedEngine {
 public:
  // `prepare` is called before anyone can connect: a worker that waits for this address does so at once.
  explicit ServedEngine(rpc::ServerOptions options = {}, const std::function<void(FakeEngine&)>& prepare = nullptr)
      : services_(engine) {
    if (prepare) prepare(engine);
    if (options.listen == rpc::kDefaultAddress) options.listen = "127.0.0.1:0";
    auto started = rpc::Server::Start(options, services_.all());
    INFO(started.status());
    REQUIRE(started.ok());
    server_ = *std::move(started);
    server_->SetServing(true);
  }
  ~ServedEngine() { End(); }
  void End() {
    if (server_ == nullptr) return;
    services_.CloseWorkers(absl::UnavailableError("the coordinator is shutting down"));
    engine.Stop();
    server_->Shutdown(absl::Seconds(10));
    server_.reset();
  }
  std::string address() const { return server_->address().ToString(); }
  rpc::Server& server() { return *server_; }
  coordinator::Services& services() { return services_; }

  FakeEngine engine;

 private:
  coordinator::Services services_;
  std::unique_ptr<rpc::Server> server_;
};

}  // namespace grove::testing
