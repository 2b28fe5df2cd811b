#include "clients/cpp/client.h"

#include <catch2/catch.hpp>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/cli/fake_coordinator.h"

namespace grove::cli {
namespace {

using client::CallOptions;
using client::Client;

std::unique_ptr<Client> Connect(const std::string& address) {
  auto client = Client::Create({.address = address});
  REQUIRE(client.ok());
  return *std::move(client);
}

std::vector<v1::Event> Events(int count) {
  std::vector<v1::Event> events;
  for (int i = 1; i <= count; ++i) {
    v1::Event event;
    event.set_seq(static_cast<uint64_t>(i) * 10);  // numbers of one job have gaps
    event.mutable_model_called()->set_request(absl::StrCat(i));
    events.push_back(event);
  }
  return events;
}

v1::Job SomeJob() {
  v1::Job job;
  job.set_id("j-abcdefgh");
  job.set_state(v1::JOB_STATE_DONE);
  return job;
}

TEST_CASE("A submit whose answer was lost is repeated under its key and makes one job", "[client]") {
  FakeCoordinator server;
  server.SetJob(SomeJob(), {}, {});
  server.FailNext(2, absl::UnavailableError("try again"));
  auto client = Connect(server.address());
  const auto response = client->SubmitJob(v1::JobSpec(), Client::NewIdempotencyKey());
  REQUIRE(response.ok());
  CHECK(response->existed());
  CHECK(server.submitted().size() == 1);
  CHECK(server.calls("SubmitJob") == 3);
}

TEST_CASE("What must not happen twice is sent once", "[client]") {
  FakeCoordinator server;
  server.SetJob(SomeJob(), {}, {});
  auto client = Connect(server.address());
  server.FailNext(1, absl::UnavailableError("store is busy"));
  v1::ResumeJobRequest request;
  request.set_id("j-abcdefgh");
  CHECK(absl::IsUnavailable(client->ResumeJob(request).status()));
  server.FailNext(1, absl::UnavailableError("store is busy"));
  CHECK(absl::IsUnavailable(client->AddBankEntry({}).status()));
  server.FailNext(1, absl::UnavailableError("store is busy"));
  CHECK(absl::IsUnavailable(client->RemoveBankEntry("b-a")));
  CHECK(server.calls("ResumeJob") == 1);
  CHECK(server.calls("AddBankEntry") == 1);
  CHECK(server.calls("RemoveBankEntry") == 1);
}

TEST_CASE("An answer that is an error is not asked for again", "[client]") {
  FakeCoordinator server;
  server.SetJob(SomeJob(), {}, {});
  auto client = Connect(server.address());
  const absl::Status status = client->GetJob("j-nothere").status();
  CHECK(absl::IsNotFound(status));
  CHECK(absl::StrContains(status.message(), "there is no job j-nothere"));
  CHECK(server.calls("GetJob") == 1);
}

TEST_CASE("Nobody there is UNAVAILABLE within the patience, with the address", "[client]") {
  std::string address;
  {
    FakeCoordinator server;
    address = server.address();
  }
  auto client = Connect(address);
  const absl::Time began = absl::Now();
  const absl::Status status = client->GetJob("j-a", {.patience = absl::Milliseconds(300)}).status();
  CHECK(absl::IsUnavailable(status));
  CHECK(client::IsUnreachable(status));
  CHECK(absl::StrContains(status.message(), address));
  CHECK(absl::Now() - began < absl::Seconds(15));
}

TEST_CASE("A coordinator that says that it cannot work now is not called unreachable", "[client]") {
  FakeCoordinator server;
  server.SetJob(SomeJob(), {}, {});
  auto client = Connect(server.address());
  const std::string words = "the coordinator's store cannot be written: the disk is full: free some space; try again";
  server.FailNext(1000, absl::UnavailableError(words));
  const absl::Status status = client->GetJob("j-a", {.patience = absl::Milliseconds(50)}).status();
  CHECK(absl::IsUnavailable(status));
  CHECK(status.message() == words);
  CHECK(client::IsAnswered(status));
  CHECK_FALSE(client::IsUnreachable(status));
}

TEST_CASE("A plaintext address on another machine is refused before anything is sent", "[client]") {
  const auto client = Client::Create({.address = "farm.example:7433"});
  REQUIRE_FALSE(client.ok());
  CHECK(Client::Create({.address = "farm.example:7433", .insecure = true}).ok());
  CHECK_FALSE(Client::Create({.address = "127.0.0.1:notaport"}).ok());
}

TEST_CASE("A watch that is cut attaches again from the last event, and none comes twice", "[client]") {
  FakeCoordinator server;
  server.SetJob(SomeJob(), Events(7), {});
  server.CutWatchAfter(3);
  auto client = Connect(server.address());
  std::vector<uint64_t> seen;
  int detached = 0, attached = 0;
  client::WatchOptions options;
  options.on_reattach = [&](const absl::Status&, absl::Duration) { ++detached; };
  options.on_attached = [&] { ++attached; };
  const absl::Status status = client->WatchJob("j-abcdefgh", options, [&](const v1::Event& event) {
    seen.push_back(event.seq());
    return true;
  });
  CHECK(status.ok());
  CHECK(seen == std::vector<uint64_t>{10, 20, 30, 40, 50, 60, 70});
  CHECK(server.watched_from() == std::vector<uint64_t>{0, 30, 60});
  CHECK(detached == 2);
  CHECK(attached == 2);
}

TEST_CASE("A watch outlives the death and return of its coordinator", "[client]") {
  FakeCoordinator server;
  server.SetJob(SomeJob(), Events(3), {});
  server.HoldWatchOpen(true);
  auto client = Connect(server.address());
  std::vector<uint64_t> seen;
  absl::Status status;
  std::thread watcher([&] {
    status = client->WatchJob("j-abcdefgh", {}, [&](const v1::Event& event) {
      seen.push_back(event.seq());
      return true;
    });
  });
  REQUIRE(server.WaitForWatches(1));
  server.Stop();
  server.SetJob(SomeJob(), Events(5), {});
  server.HoldWatchOpen(false);
  server.Restart();
  watcher.join();
  CHECK(status.ok());
  CHECK(seen == std::vector<uint64_t>{10, 20, 30, 40, 50});
}

TEST_CASE("A coordinator that stays away ends the watch with a message", "[client]") {
  FakeCoordinator server;
  server.SetJob(SomeJob(), Events(3), {});
  server.HoldWatchOpen(true);
  auto client = Connect(server.address());
  client::WatchOptions options;
  options.reattach_for = absl::Milliseconds(500);
  absl::Status status;
  std::thread watcher([&] { status = client->WatchJob("j-abcdefgh", options, [](const v1::Event&) { return true; }); });
  REQUIRE(server.WaitForWatches(1));
  server.Stop();
  watcher.join();
  CHECK(absl::IsUnavailable(status));
  CHECK(absl::StrContains(status.message(), "tried to attach again"));
}

TEST_CASE("A cancelled watch ends at once, and so does one that was cancelled before", "[client]") {
  FakeCoordinator server;
  server.SetJob(SomeJob(), Events(1), {});
  server.HoldWatchOpen(true);
  auto client = Connect(server.address());
  client::Cancellation cancellation;
  client::WatchOptions options;
  options.cancellation = &cancellation;
  absl::Status status;
  std::thread watcher([&] { status = client->WatchJob("j-abcdefgh", options, [](const v1::Event&) { return true; }); });
  REQUIRE(server.WaitForWatches(1));
  cancellation.Cancel();
  watcher.join();
  CHECK(absl::IsCancelled(status));
  CHECK(absl::IsCancelled(client->WatchJob("j-abcdefgh", options, [](const v1::Event&) { return true; })));
  CHECK(absl::IsCancelled(client->GetJob("j-abcdefgh", {.cancellation = &cancellation}).status()));
}

TEST_CASE("An artifact is whole or refused, never cut", "[client]") {
  FakeCoordinator server;
  auto client = Connect(server.address());
  CHECK(client->GetArtifact("abc", 1 << 20).value() == "{\"exchange\":1}\n");
  CHECK(absl::IsResourceExhausted(client->GetArtifact("abc", 5).status()));
}

}  // namespace
}  // namespace grove::cli
