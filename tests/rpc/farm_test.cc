#include <grpcpp/grpcpp.h>

#include <catch2/catch.hpp>
#include <future>
#include <random>
#include <set>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/metrics/http_endpoint.h"
#include "common/rpc/channel.h"
#include "grove/v1/services.grpc.pb.h"
#include "tests/rpc/coordinator_fixture.h"
#include "tests/rpc/fake_pipeline.h"
#include "tests/support/http_get.h"
#include "tests/support/temp_folder.h"
#include "worker/rpc/farm_client.h"
#include "worker/rpc/worker_metrics.h"

namespace grove {
namespace {

using testing::FakeEngine;
using testing::FakePipeline;
using testing::ServedEngine;
using testing::TempFolder;
using worker::FarmClient;
using worker::LeaseKey;
using Sessions = std::map<uint64_t, FakeEngine::SessionState>;

v1::CoordinatorMessage WelcomeMessage(double heartbeat = 0.05) {
  v1::CoordinatorMessage message;
  message.mutable_welcome()->set_coordinator_version("test");
  message.mutable_welcome()->set_heartbeat_seconds(heartbeat);
  return message;
}
v1::CoordinatorMessage AssignmentOf(const std::string& work, int attempt) {
  v1::CoordinatorMessage message;
  *message.mutable_assignment()->mutable_lease() = worker::LeaseOf({work, attempt});
  message.mutable_assignment()->mutable_evaluate()->mutable_candidate()->set_source("int x;");
  return message;
}
v1::CoordinatorMessage AckOf(const v1::Lease& lease) {
  v1::CoordinatorMessage message;
  *message.mutable_ack()->mutable_lease() = lease;
  return message;
}

std::vector<LeaseKey> ResultsIn(const FakeEngine::SessionState& state) {
  std::vector<LeaseKey> results;
  for (const auto& message : state.said) {
    if (message.has_result()) results.push_back(worker::KeyOf(message.result().lease()));
  }
  return results;
}

worker::FarmClientOptions ClientOptions(const std::string& address, const std::string& spool) {
  worker::FarmClientOptions options;
  options.channel.address = address;
  options.worker_id = "w-testtest";
  options.version = "test";
  options.spool_dir = spool;
  options.backoff = {absl::Milliseconds(1), absl::Milliseconds(20)};
  options.seed = 1;
  return options;
}

// A farm client with its pipeline.
struct Worker {
  explicit Worker(const worker::FarmClientOptions& options, int capacity = 4) {
    auto created = FarmClient::Create(options);
    INFO(created.status());
    REQUIRE(created.ok());
    client = *std::move(created);
    pipeline = std::make_unique<FakePipeline>(*client, capacity);
    client->Start(*pipeline);
  }
  ~Worker() { client->Stop(); }
  bool WaitFor(const std::function<bool(const worker::FarmClientStats&)>& holds) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!holds(client->Stats())) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }
  std::unique_ptr<FarmClient> client;
  std::unique_ptr<FakePipeline> pipeline;
};

TEST_CASE("A worker says hello, works, is acknowledged and forgets", "[farm]") {
  TempFolder folder;
  ServedEngine served;
  served.engine.on_connected = [](uint64_t, FakeEngine::SessionState& state) {
    state.link->Send(WelcomeMessage());
    state.link->Send(AssignmentOf("j-a/k1", 1));
  };
  served.engine.on_said = [](uint64_t, FakeEngine::SessionState& state, const v1::WorkerMessage& message) {
    if (message.has_result()) state.link->Send(AckOf(message.result().lease()));
  };
  Worker worker(ClientOptions(served.address(), folder / "spool"));
  REQUIRE(worker.pipeline->WaitForSubmitted(1));
  CHECK(served.engine.WaitFor([](const Sessions& sessions) {
    for (const auto& message : sessions.at(1).said) {
      if (message.heartbeat().running_size() == 1 && message.heartbeat().slot_state() == "timing") return true;
    }
    return false;
  }));
  v1::WorkerProgress progress;
  *progress.mutable_lease() = worker::LeaseOf({"j-a/k1", 1});
  progress.set_stage("check");
  worker.client->OnProgress(progress);
  CHECK(served.engine.WaitFor([](const Sessions& sessions) {
    for (const auto& message : sessions.at(1).said) {
      if (message.progress().stage() == "check") return true;
    }
    return false;
  }));
  REQUIRE(worker.pipeline->Finish({"j-a/k1", 1}, "fast"));
  CHECK(worker.WaitFor(
      [](const auto& stats) { return stats.results_acknowledged_total == 1 && stats.spool_files == 0; }));
  CHECK(served.engine.WaitFor([](const Sessions& sessions) {
    const auto& hello = sessions.at(1).hello;
    return hello.worker_id() == "w-testtest" && hello.protocol() == 1 && hello.capacity() == 4 &&
           hello.device().name() == "test device" && hello.sandbox_layers_size() == 2 &&
           ResultsIn(sessions.at(1)).size() == 1;
  }));
}

TEST_CASE("After the stream is lost, what runs and what is unacknowledged is said again, until acknowledged",
          "[farm]") {
  TempFolder folder;
  auto first = std::make_unique<ServedEngine>();
  const std::string address = first->address();
  first->engine.on_connected = [](uint64_t, FakeEngine::SessionState& state) {
    state.link->Send(WelcomeMessage());
    for (const char* work : {"j-a/k1", "j-a/k2", "j-a/k3"}) state.link->Send(AssignmentOf(work, 1));
  };
  Worker worker(ClientOptions(address, folder / "spool"));
  REQUIRE(worker.pipeline->WaitForSubmitted(3));
  // Two results arrive and are not acknowledged; the third lease still runs.
  REQUIRE(worker.pipeline->Finish({"j-a/k1", 1}, "one"));
  REQUIRE(worker.pipeline->Finish({"j-a/k2", 1}, "two"));
  REQUIRE(first->engine.WaitFor([](const Sessions& sessions) { return ResultsIn(sessions.at(1)).size() == 2; }));
  first.reset();  // gone without an ack

  // The next coordinator stands on the same address and drops the stream after the results came, unacknowledged again.
  rpc::ServerOptions options;
  options.listen = address;
  {
    ServedEngine second(options, [](FakeEngine& engine) {
      engine.on_connected = [](uint64_t, FakeEngine::SessionState& state) { state.link->Send(WelcomeMessage()); };
    });
    REQUIRE(second.engine.WaitFor(
        [](const Sessions& sessions) { return sessions.count(1) > 0 && ResultsIn(sessions.at(1)).size() == 2; }));
    CHECK(second.engine.WaitFor([](const Sessions& sessions) {
      const auto& hello = sessions.at(1).hello;
      return hello.running_size() == 1 && hello.running(0).work() == "j-a/k3" && hello.unacknowledged_size() == 2;
    }));
  }
  ServedEngine third(options, [](FakeEngine& engine) {
    engine.on_connected = [](uint64_t, FakeEngine::SessionState& state) { state.link->Send(WelcomeMessage()); };
    engine.on_said = [](uint64_t, FakeEngine::SessionState& state, const v1::WorkerMessage& message) {
      if (message.has_result()) state.link->Send(AckOf(message.result().lease()));
    };
  });
  REQUIRE(worker.WaitFor([](const auto& stats) { return stats.results_acknowledged_total == 2; }));
  REQUIRE(worker.pipeline->Finish({"j-a/k3", 1}, "three"));
  REQUIRE(worker.WaitFor(
      [](const auto& stats) { return stats.results_acknowledged_total == 3 && stats.spool_files == 0; }));
  // Once acknowledged, never again: another session has none.
  third.engine.WaitFor([](const Sessions& sessions) {
    const_cast<FakeEngine::SessionState&>(sessions.at(1)).link->Close(absl::UnavailableError("again"));
    return true;
  });
  CHECK(third.engine.WaitFor([](const Sessions& sessions) {
    return sessions.count(2) > 0 && sessions.at(2).hello.unacknowledged_size() == 0 &&
           sessions.at(2).hello.running_size() == 0;
  }));
  CHECK(worker.client->Stats().results_lost_total == 0);
}

TEST_CASE("Results survive a worker that was killed", "[farm]") {
  TempFolder folder;
  ServedEngine served;
  served.engine.on_connected = [](uint64_t session, FakeEngine::SessionState& state) {
    state.link->Send(WelcomeMessage());
    if (session == 1) state.link->Send(AssignmentOf("j-a/k1", 3));
  };
  served.engine.on_said = [](uint64_t session, FakeEngine::SessionState& state, const v1::WorkerMessage& message) {
    if (session > 1 && message.has_result()) state.link->Send(AckOf(message.result().lease()));
  };
  {
    Worker worker(ClientOptions(served.address(), folder / "spool"));
    REQUIRE(worker.pipeline->WaitForSubmitted(1));
    REQUIRE(worker.pipeline->Finish({"j-a/k1", 3}, "kept"));
    REQUIRE(served.engine.WaitFor([](const Sessions& sessions) { return ResultsIn(sessions.at(1)).size() == 1; }));
  }
  Worker again(ClientOptions(served.address(), folder / "spool"));
  REQUIRE(
      again.WaitFor([](const auto& stats) { return stats.results_acknowledged_total == 1 && stats.spool_files == 0; }));
  CHECK(served.engine.WaitFor([](const Sessions& sessions) {
    const auto& hello = sessions.at(2).hello;
    return hello.unacknowledged_size() == 1 && hello.unacknowledged(0).attempt() == 3 && hello.running_size() == 0;
  }));
}

TEST_CASE("A revoked lease is cancelled and brings no result, by revoke or by welcome", "[farm]") {
  TempFolder folder;
  ServedEngine served;
  served.engine.on_connected = [](uint64_t session, FakeEngine::SessionState& state) {
    v1::CoordinatorMessage welcome = WelcomeMessage();
    if (session == 2) *welcome.mutable_welcome()->add_revoked() = worker::LeaseOf({"j-a/k2", 1});
    state.link->Send(welcome);
    if (session == 1) {
      state.link->Send(AssignmentOf("j-a/k1", 1));
      state.link->Send(AssignmentOf("j-a/k2", 1));
    }
  };
  Worker worker(ClientOptions(served.address(), folder / "spool"));
  REQUIRE(worker.pipeline->WaitForSubmitted(2));
  served.engine.WaitFor([](const Sessions& sessions) {
    v1::CoordinatorMessage revoke;
    *revoke.mutable_revoke()->mutable_lease() = worker::LeaseOf({"j-a/k1", 1});
    sessions.at(1).link->Send(revoke);
    return true;
  });
  REQUIRE(worker.pipeline->WaitForCancelled(1));
  CHECK(worker.pipeline->cancelled()[0] == LeaseKey{"j-a/k1", 1});
  CHECK_FALSE(worker.pipeline->Finish({"j-a/k1", 1}));
  served.engine.WaitFor([](const Sessions& sessions) {
    sessions.at(1).link->Close(absl::UnavailableError("again"));
    return true;
  });
  REQUIRE(worker.pipeline->WaitForCancelled(2));
  CHECK(worker.WaitFor([](const auto& stats) { return stats.running == 0 && stats.revocations_total == 2; }));
}

TEST_CASE("A newer attempt at the same work replaces the older one", "[farm]") {
  TempFolder folder;
  ServedEngine served;
  served.engine.on_connected = [](uint64_t, FakeEngine::SessionState& state) {
    state.link->Send(WelcomeMessage());
    state.link->Send(AssignmentOf("j-a/k1", 1));
    state.link->Send(AssignmentOf("j-a/k1", 1));  // said twice
    state.link->Send(AssignmentOf("j-a/k1", 2));
  };
  Worker worker(ClientOptions(served.address(), folder / "spool"));
  REQUIRE(worker.pipeline->WaitForSubmitted(2));
  REQUIRE(worker.pipeline->WaitForCancelled(1));
  CHECK(worker.pipeline->cancelled()[0] == LeaseKey{"j-a/k1", 1});
  CHECK(worker.client->Stats().assignments_total == 2);
}

TEST_CASE("Work beyond the capacity or of no known kind is handed back and not lost", "[farm]") {
  TempFolder folder;
  ServedEngine served;
  served.engine.on_connected = [](uint64_t, FakeEngine::SessionState& state) {
    state.link->Send(WelcomeMessage());
    state.link->Send(AssignmentOf("j-a/k1", 1));
    state.link->Send(AssignmentOf("j-a/k2", 1));
    v1::CoordinatorMessage strange;
    *strange.mutable_assignment()->mutable_lease() = worker::LeaseOf({"j-a/k3", 1});
    state.link->Send(strange);
  };
  Worker worker(ClientOptions(served.address(), folder / "spool"), /*capacity=*/1);
  CHECK(served.engine.WaitFor([](const Sessions& sessions) {
    std::set<std::string> handed_back;
    if (sessions.count(1) == 0) return false;
    for (const auto& message : sessions.at(1).said) {
      if (!message.result().infrastructure_failure().empty()) handed_back.insert(message.result().lease().work());
    }
    return handed_back == std::set<std::string>{"j-a/k2", "j-a/k3"};
  }));
}

TEST_CASE("Bytes that are no UTF-8 in a result do not block the stream", "[farm]") {
  TempFolder folder;
  ServedEngine served;
  served.engine.on_connected = [](uint64_t, FakeEngine::SessionState& state) {
    state.link->Send(WelcomeMessage());
    state.link->Send(AssignmentOf("j-a/k1", 1));
  };
  served.engine.on_said = [](uint64_t, FakeEngine::SessionState& state, const v1::WorkerMessage& message) {
    if (message.has_result()) state.link->Send(AckOf(message.result().lease()));
  };
  Worker worker(ClientOptions(served.address(), folder / "spool"));
  REQUIRE(worker.pipeline->WaitForSubmitted(1));
  REQUIRE(worker.pipeline->Finish({"j-a/k1", 1}, "broken \xFF\xC0 text"));
  CHECK(worker.WaitFor([](const auto& stats) { return stats.results_acknowledged_total == 1; }));
  CHECK(worker.client->Stats().sessions_total == 1);
}

TEST_CASE("Draining waits for what runs and for its acknowledgement", "[farm]") {
  TempFolder folder;
  ServedEngine served;
  served.engine.on_connected = [](uint64_t, FakeEngine::SessionState& state) {
    state.link->Send(WelcomeMessage());
    state.link->Send(AssignmentOf("j-a/k1", 1));
  };
  Worker worker(ClientOptions(served.address(), folder / "spool"));
  REQUIRE(worker.pipeline->WaitForSubmitted(1));
  std::promise<void> idle;
  std::atomic<bool> is_idle{false};
  worker.client->Drain([&] {
    is_idle = true;
    idle.set_value();
  });
  REQUIRE(served.engine.WaitFor([](const Sessions& sessions) {
    return !sessions.at(1).said.empty() && sessions.at(1).said.back().heartbeat().draining();
  }));
  CHECK_FALSE(is_idle);
  REQUIRE(worker.pipeline->Finish({"j-a/k1", 1}));
  REQUIRE(served.engine.WaitFor([](const Sessions& sessions) { return ResultsIn(sessions.at(1)).size() == 1; }));
  CHECK_FALSE(is_idle);
  served.engine.WaitFor([](const Sessions& sessions) {
    sessions.at(1).link->Send(AckOf(worker::LeaseOf({"j-a/k1", 1})));
    return true;
  });
  CHECK(idle.get_future().wait_for(std::chrono::seconds(60)) == std::future_status::ready);
}

TEST_CASE("A worker without a coordinator drains at once and stops at once", "[farm]") {
  TempFolder folder;
  Worker worker(ClientOptions("unix:" + (folder / "nobody"), folder / "spool"));
  CHECK(
      worker.WaitFor([](const auto& stats) { return stats.connect_failures_total >= 3 && !stats.last_error.empty(); }));
  std::promise<void> idle;
  worker.client->Drain([&] { idle.set_value(); });
  CHECK(idle.get_future().wait_for(std::chrono::seconds(60)) == std::future_status::ready);
}

TEST_CASE("A coordinator of another protocol is not asked again", "[farm]") {
  TempFolder folder;
  ServedEngine served;
  served.engine.on_connected = [](uint64_t, FakeEngine::SessionState& state) {
    state.link->Close(absl::FailedPreconditionError("this coordinator speaks worker protocol 2"));
  };
  auto options = ClientOptions(served.address(), folder / "spool");
  std::promise<absl::Status> refused;
  options.on_refused = [&](const absl::Status& status) { refused.set_value(status); };
  Worker worker(options);
  auto status = refused.get_future();
  REQUIRE(status.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
  CHECK(absl::StrContains(status.get().message(), "protocol 2"));
}

// ------------------------------------------------------------------------------------------- the coordinator's end of
// a stream

using RawStream = std::unique_ptr<grpc::ClientReaderWriter<v1::WorkerMessage, v1::CoordinatorMessage>>;

v1::WorkerMessage HelloMessage(const std::string& id = "w-rawrawra") {
  v1::WorkerMessage message;
  message.mutable_hello()->set_worker_id(id);
  message.mutable_hello()->set_protocol(1);
  message.mutable_hello()->mutable_device()->set_kind(v1::DEVICE_KIND_CPU);
  return message;
}

std::unique_ptr<v1::Farm::Stub> FarmStub(const std::string& address) {
  auto channel = rpc::CreateChannel({address, {}, false, ""});
  REQUIRE(channel.ok());
  return v1::Farm::NewStub(*channel);
}

TEST_CASE("A stream that does not begin with a sound hello is refused with the reason", "[farm]") {
  ServedEngine served;
  auto stub = FarmStub(served.address());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  RawStream stream = stub->Connect(&context);
  v1::WorkerMessage message;
  std::string words;
  SECTION("a heartbeat") {
    message.mutable_heartbeat();
    words = "first message must be hello";
  }
  SECTION("another protocol") {
    message = HelloMessage();
    message.mutable_hello()->set_protocol(9);
    words = "protocol";
  }
  SECTION("a name that is a path") {
    message = HelloMessage("../../x");
    words = "worker_id";
  }
  SECTION("hello twice") {
    REQUIRE(stream->Write(HelloMessage()));
    message = HelloMessage();
    words = "hello once";
  }
  stream->Write(message);
  v1::CoordinatorMessage answer;
  while (stream->Read(&answer)) {
  }
  const grpc::Status status = stream->Finish();
  CHECK_FALSE(status.ok());
  CHECK(absl::StrContains(status.error_message(), words));
}

TEST_CASE("The engine hears of a worker's end once, however it ends", "[farm]") {
  ServedEngine served;
  auto stub = FarmStub(served.address());
  const int how = GENERATE(0, 1, 2);
  CAPTURE(how);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  RawStream stream = stub->Connect(&context);
  REQUIRE(stream->Write(HelloMessage()));
  REQUIRE(served.engine.WaitFor(
      [](const Sessions& sessions) { return sessions.count(1) > 0 && sessions.at(1).link != nullptr; }));
  if (how == 0) stream->WritesDone();
  if (how == 1) context.TryCancel();
  if (how == 2) served.services().CloseWorkers(absl::UnavailableError("ending"));
  CHECK(served.engine.WaitFor([](const Sessions& sessions) { return sessions.at(1).closed; }));
  v1::CoordinatorMessage answer;
  while (stream->Read(&answer)) {
  }
  const grpc::Status status = stream->Finish();
  CHECK(status.error_code() == (how == 0   ? grpc::StatusCode::OK
                                : how == 1 ? grpc::StatusCode::CANCELLED
                                           : grpc::StatusCode::UNAVAILABLE));
}

TEST_CASE("A worker that does not read is closed when its queue is full, and not before", "[farm]") {
  ServedEngine served;
  auto stub = FarmStub(served.address());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  RawStream stream = stub->Connect(&context);
  REQUIRE(stream->Write(HelloMessage()));
  REQUIRE(served.engine.WaitFor([](const Sessions& sessions) { return sessions.count(1) > 0; }));
  v1::CoordinatorMessage large = AssignmentOf("j-a/k1", 1);
  large.mutable_assignment()->mutable_evaluate()->mutable_candidate()->set_source(std::string(1 << 20, 'x'));
  std::shared_ptr<coordinator::WorkerLink> link;
  served.engine.WaitFor([&](const Sessions& sessions) {
    link = sessions.at(1).link;
    return true;
  });
  // 64 MiB may wait, and some more is on its way; 200 MiB may not.
  for (int i = 0; i < 32; ++i) link->Send(large);
  served.engine.WaitFor([&](const Sessions& sessions) {
    CHECK_FALSE(sessions.at(1).closed);
    return true;
  });
  for (int i = 0; i < 200; ++i) link->Send(large);
  CHECK(served.engine.WaitFor([](const Sessions& sessions) { return sessions.at(1).closed; }));
  link->Send(large);  // harmless after the end
  link->Close(absl::UnavailableError("twice"));
}

TEST_CASE("Opening and cancelling streams at any moment leaves none behind", "[farm]") {
  ServedEngine served;
  served.engine.on_connected = [](uint64_t session, FakeEngine::SessionState& state) {
    for (int i = 0; i < 5; ++i) state.link->Send(WelcomeMessage());
    if (session % 3 == 0) state.link->Close(absl::UnavailableError("engine closes"));
  };
  const unsigned seed = std::random_device()();
  CAPTURE(seed);
  std::vector<std::thread> clients;
  std::atomic<int> hellos{0};
  for (int client = 0; client < 4; ++client) {
    // Its assertion belongs to this thread: Catch2 knows no other.
    clients.emplace_back([&, client, stub = std::shared_ptr<v1::Farm::Stub>(FarmStub(served.address()))] {
      std::mt19937 random(seed + static_cast<unsigned>(client));
      for (int round = 0; round < 100; ++round) {
        grpc::ClientContext context;
        context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
        RawStream stream = stub->Connect(&context);
        if (random() % 4 != 0 && stream->Write(HelloMessage())) ++hellos;
        v1::WorkerMessage heartbeat;
        heartbeat.mutable_heartbeat();
        for (unsigned i = random() % 3; i > 0; --i) stream->Write(heartbeat);
        if (random() % 2 == 0) {
          context.TryCancel();
        } else {
          stream->WritesDone();
        }
        v1::CoordinatorMessage answer;
        while (stream->Read(&answer)) {
        }
        stream->Finish();
      }
    });
  }
  for (std::thread& client : clients) client.join();
  CHECK(hellos > 0);
  CHECK(served.engine.WaitFor([](const Sessions& sessions) {
    return std::all_of(sessions.begin(), sessions.end(), [](const auto& one) { return one.second.closed; });
  }));
}

TEST_CASE("A flood of messages from a worker is read only as fast as the engine works them off", "[farm]") {
  ServedEngine served;
  auto stub = FarmStub(served.address());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  RawStream stream = stub->Connect(&context);
  REQUIRE(stream->Write(HelloMessage()));
  REQUIRE(served.engine.WaitFor([](const Sessions& sessions) { return sessions.count(1) > 0; }));
  served.engine.Pause(true);
  std::atomic<int> written{0};
  std::thread flood([&] {
    v1::WorkerMessage progress;
    progress.mutable_progress()->set_detail(std::string(64 << 10, 'd'));
    for (int i = 0; i < 2000 && stream->Write(progress); ++i) ++written;  // 128 MB in all
  });
  // While the engine stands still, the writer must come to a halt well before its end.
  int last = -1;
  for (int still = 0; still < 200;) {
    const int now = written;
    still = now == last ? still + 1 : 0;
    last = now;
    std::this_thread::yield();
    struct timespec pause {
      0, 1'000'000
    };
    nanosleep(&pause, nullptr);  // a sample of progress, not a synchronisation
  }
  CHECK(written < 1000);
  served.engine.Pause(false);
  flood.join();
  CHECK(written == 2000);
  CHECK(served.engine.WaitFor([](const Sessions& sessions) { return sessions.at(1).said.size() == 2000; }));
  context.TryCancel();
}

TEST_CASE("The worker's scrape shows pipeline and session and pleases promtool", "[farm][metrics]") {
  TempFolder folder;
  ServedEngine served;
  served.engine.on_connected = [](uint64_t, FakeEngine::SessionState& state) { state.link->Send(WelcomeMessage()); };
  Worker worker(ClientOptions(served.address(), folder / "spool"));
  worker::WorkerMetrics metrics(*worker.pipeline, *worker.client);
  auto web = metrics::HttpEndpoint::Start(
      "127.0.0.1:0", [&] { return metrics.Collect(); }, [&] { return metrics.Health(); });
  REQUIRE(web.ok());
  REQUIRE(worker.WaitFor([](const auto& stats) { return stats.connected; }));
  CHECK(testing::HttpGet((*web)->address(), "/healthz").code == 200);
  const auto page = testing::HttpGet((*web)->address(), "/metrics");
  CHECK(absl::StrContains(page.body, "grove_worker_connected 1\n"));
  CHECK(absl::StrContains(page.body, "grove_worker_slot{state=\"idle\"} 1\n"));
  CHECK(absl::StrContains(page.body, "grove_worker_verdicts_total{verdict=\"correct\"} 0\n"));
  CHECK(absl::StrContains(page.body, "grove_worker_sandbox_layer_active{layer=\"cgroup\"} 0\n"));
  CHECK(absl::StrContains(page.body, "grove_worker_stage_duration_seconds_bucket{stage=\"build\""));
  CHECK(testing::PromtoolComplaints(page.body, folder / "page") == "");
  served.End();
  REQUIRE(worker.WaitFor([](const auto& stats) { return !stats.connected; }));
  CHECK(testing::HttpGet((*web)->address(), "/healthz").code == 503);
}

}  // namespace
}  // namespace grove
