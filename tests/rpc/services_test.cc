#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <future>
#include <random>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "common/metrics/http_endpoint.h"
#include "common/rpc/channel.h"
#include "common/rpc/status.h"
#include "coordinator/web/engine_metrics.h"
#include "grove/v1/services.grpc.pb.h"
#include "tests/rpc/coordinator_fixture.h"
#include "tests/support/http_get.h"
#include "tests/support/temp_folder.h"

namespace grove {
namespace {

using testing::ServedEngine;

std::shared_ptr<grpc::Channel> Dial(const std::string& address) {
  auto channel = rpc::CreateChannel({address, {}, false, ""});
  REQUIRE(channel.ok());
  return *channel;
}

// No test waits longer than this; a healthy one takes milliseconds.
void Bound(grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
}

std::vector<v1::Event> Events(uint64_t first, uint64_t last, std::size_t padding = 0) {
  std::vector<v1::Event> events;
  for (uint64_t seq = first; seq <= last; ++seq) {
    v1::Event event;
    event.set_seq(seq);
    event.mutable_job_state()->set_reason(std::string(padding, 'p'));
    events.push_back(std::move(event));
  }
  return events;
}

// A call with bytes that need not be the message.
grpc::Status RawCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                     const std::string& bytes) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  Bound(context);
  grpc::Slice slice(bytes);
  grpc::ByteBuffer request(&slice, 1), response;
  std::promise<grpc::Status> done;
  stub.UnaryCall(&context, method, grpc::StubOptions(), &request, &response,
                 [&](grpc::Status status) { done.set_value(status); });
  return done.get_future().get();
}

TEST_CASE("A submission is answered, and the same key gives the same job", "[rpc]") {
  ServedEngine served;
  auto stub = v1::Jobs::NewStub(Dial(served.address()));
  v1::SubmitJobRequest request;
  request.set_idempotency_key("0123456789abcdef");
  auto* problem = request.mutable_spec()->mutable_search()->mutable_problem();
  problem->set_format(v1::PROBLEM_FORMAT_KERNELBENCH);
  problem->set_source("class Model: pass\n");
  v1::SubmitJobResponse first, second;
  {
    grpc::ClientContext context;
    Bound(context);
    REQUIRE(stub->SubmitJob(&context, request, &first).ok());
  }
  {
    grpc::ClientContext context;
    Bound(context);
    REQUIRE(stub->SubmitJob(&context, request, &second).ok());
  }
  CHECK_FALSE(first.existed());
  CHECK(second.existed());
  CHECK(first.job().id() == second.job().id());
}

TEST_CASE("Malformed requests get a clear code and text, and the next call is served", "[rpc]") {
  ServedEngine served;
  served.engine.AddJob("j-known");
  auto channel = Dial(served.address());
  auto stub = v1::Jobs::NewStub(channel);
  auto expect = [&](const grpc::Status& status, grpc::StatusCode code, const std::string& words) {
    CAPTURE(status.error_code(), status.error_message());
    CHECK(status.error_code() == code);
    CHECK(absl::StrContains(status.error_message(), words));
  };
  const auto invalid = grpc::StatusCode::INVALID_ARGUMENT;

  expect(RawCall(channel, "/grove.v1.Jobs/GetJob", "\x0a\x03\xff\xfe\xfd"), invalid, "UTF-8");
  expect(RawCall(channel, "/grove.v1.Jobs/GetJob", "\x0a\x7f"), invalid, "malformed");
  expect(RawCall(channel, "/grove.v1.Jobs/SubmitJob", std::string(1000, '\xff')), invalid, "/grove.v1.Jobs/SubmitJob");
  expect(RawCall(channel, "/grove.v1.Jobs/WatchJob", std::string(10, '\xff')), invalid, "malformed");
  expect(RawCall(channel, "/grove.v1.Bank/GetBankEntry", "\x0a\x7f"), invalid, "malformed");
  expect(RawCall(channel, "/grove.v1.Jobs/SubmitJob", std::string(70 << 20, '\0')),
         grpc::StatusCode::RESOURCE_EXHAUSTED, "");
  expect(RawCall(channel, "/grove.v1.Jobs/NoSuchMethod", ""), grpc::StatusCode::UNIMPLEMENTED, "NoSuchMethod");
  expect(RawCall(channel, "/grove.v1.Jobs/SubmitJob", ""), invalid, "idempotency_key");

  v1::GetJobRequest get;
  v1::Job job;
  get.set_id("j-unknown");
  {
    grpc::ClientContext context;
    Bound(context);
    expect(stub->GetJob(&context, get, &job), grpc::StatusCode::NOT_FOUND, "j-unknown");
  }
  get.set_id("../../../etc/passwd");
  {
    grpc::ClientContext context;
    Bound(context);
    expect(stub->GetJob(&context, get, &job), invalid, "not a job id");
  }
  {
    grpc::ClientContext context;
    Bound(context);
    v1::WatchJobRequest watch;
    watch.set_id("j-unknown");
    auto reader = stub->WatchJob(&context, watch);
    v1::Event event;
    CHECK_FALSE(reader->Read(&event));
    expect(reader->Finish(), grpc::StatusCode::NOT_FOUND, "j-unknown");
  }
  {
    grpc::ClientContext context;
    Bound(context);
    v1::GetArtifactRequest artifact;
    artifact.set_sha256("../blob");
    auto reader = stub->GetArtifact(&context, artifact);
    v1::ArtifactChunk chunk;
    CHECK_FALSE(reader->Read(&chunk));
    expect(reader->Finish(), invalid, "SHA-256");
  }
  get.set_id("j-known");
  grpc::ClientContext context;
  Bound(context);
  CHECK(stub->GetJob(&context, get, &job).ok());
}

TEST_CASE("Random bytes to every method never kill the server", "[rpc]") {
  ServedEngine served;
  served.engine.AddJob("j-known");
  auto channel = Dial(served.address());
  const unsigned seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937 random(seed);
  const char* methods[] = {"Jobs/SubmitJob",       "Jobs/GetJob",      "Jobs/ListJobs",     "Jobs/CancelJob",
                           "Jobs/ResumeJob",       "Jobs/WatchJob",    "Jobs/GetTree",      "Jobs/GetNode",
                           "Jobs/GetArtifact",     "Bank/ListBank",    "Bank/GetBankEntry", "Bank/AddBankEntry",
                           "Bank/RemoveBankEntry", "Farm/ListWorkers", "Farm/GetFarmInfo",  "Farm/Connect"};
  for (int round = 0; round < 200; ++round) {
    std::string bytes(random() % 64, ' ');
    for (char& c : bytes) c = static_cast<char>(random());
    const std::string method = absl::StrCat("/grove.v1.", methods[random() % std::size(methods)]);
    const grpc::Status status = RawCall(channel, method, bytes);
    CAPTURE(method, status.error_code(), status.error_message());
    CHECK(status.error_code() != grpc::StatusCode::UNAVAILABLE);
    CHECK(status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED);
  }
  auto stub = v1::Jobs::NewStub(channel);
  grpc::ClientContext context;
  Bound(context);
  v1::GetJobRequest get;
  get.set_id("j-known");
  v1::Job job;
  CHECK(stub->GetJob(&context, get, &job).ok());
}

TEST_CASE("A watch that broke goes on from the sequence number that it had reached", "[rpc]") {
  ServedEngine served;
  served.engine.AddJob("j-watch");
  served.engine.Append("j-watch", Events(1, 200));
  auto stub = v1::Jobs::NewStub(Dial(served.address()));
  std::vector<uint64_t> seen;
  v1::WatchJobRequest request;
  request.set_id("j-watch");
  v1::Event event;
  {
    grpc::ClientContext context;
    Bound(context);
    auto reader = stub->WatchJob(&context, request);
    while (seen.size() < 70 && reader->Read(&event)) seen.push_back(event.seq());
    context.TryCancel();
    while (reader->Read(&event)) {
    }
    CHECK(reader->Finish().error_code() == grpc::StatusCode::CANCELLED);
  }
  served.engine.Append("j-watch", Events(201, 300));
  request.set_after_seq(seen.back());
  grpc::ClientContext context;
  Bound(context);
  auto reader = stub->WatchJob(&context, request);
  while (seen.size() < 300 && reader->Read(&event)) seen.push_back(event.seq());
  // Live ones now, then the end.
  served.engine.Append("j-watch", Events(301, 302), /*ended=*/true);
  while (reader->Read(&event)) seen.push_back(event.seq());
  CHECK(reader->Finish().ok());
  REQUIRE(seen.size() == 302);
  for (uint64_t i = 0; i < seen.size(); ++i) REQUIRE(seen[i] == i + 1);
}

TEST_CASE("A cancelled watch leaves nothing waiting in the engine", "[rpc]") {
  ServedEngine served;
  served.engine.AddJob("j-quiet");
  auto stub = v1::Jobs::NewStub(Dial(served.address()));
  v1::WatchJobRequest request;
  request.set_id("j-quiet");
  for (int round = 0; round < 50; ++round) {
    grpc::ClientContext context;
    Bound(context);
    auto reader = stub->WatchJob(&context, request);
    if (round % 2 == 0) {
      while (served.engine.waiting() == 0) std::this_thread::yield();
    }
    context.TryCancel();  // in odd rounds it races with the call's arrival
    v1::Event event;
    while (reader->Read(&event)) {
    }
    CHECK(reader->Finish().error_code() == grpc::StatusCode::CANCELLED);
    while (served.engine.waiting() != 0) std::this_thread::yield();
  }
}

TEST_CASE("A reader that stands still costs one page and not the job", "[rpc]") {
  ServedEngine served;
  served.engine.AddJob("j-big");
  constexpr std::size_t kPadding = 16 << 10;
  constexpr uint64_t kEvents = 4000;  // 64 MB in all
  served.engine.Append("j-big", Events(1, kEvents, kPadding), /*ended=*/true);
  auto stub = v1::Jobs::NewStub(Dial(served.address()));
  grpc::ClientContext context;
  Bound(context);
  v1::WatchJobRequest request;
  request.set_id("j-big");
  auto reader = stub->WatchJob(&context, request);
  v1::Event event;
  REQUIRE(reader->Read(&event));
  // Let the server run until flow control stops it: no more pages are asked for while the count stands still over many
  // of the engine's turns, in each of which another call is served whole.
  int64_t handed_out = -1;
  for (int still = 0; still < 50;) {
    grpc::ClientContext other;
    Bound(other);
    v1::GetJobRequest get;
    get.set_id("j-big");
    v1::Job job;
    REQUIRE(stub->GetJob(&other, get, &job).ok());
    const int64_t now = served.engine.events_handed_out();
    still = now == handed_out ? still + 1 : 0;
    handed_out = now;
  }
  // HTTP/2's windows grow to a few MiB by gRPC's bandwidth estimate; the job has 64 MB.
  CHECK(handed_out * static_cast<int64_t>(kPadding) < (24 << 20));
  uint64_t count = 1;
  while (reader->Read(&event)) ++count;
  CHECK(reader->Finish().ok());
  CHECK(count == kEvents);
}

TEST_CASE("Trees and artifacts arrive whole, empty ones too", "[rpc]") {
  ServedEngine served;
  auto stub = v1::Jobs::NewStub(Dial(served.address()));
  const int nodes = GENERATE(0, 1, 64, 65, 1000);
  std::vector<v1::TreeNode> tree(nodes);
  for (int i = 0; i < nodes; ++i) tree[i].mutable_kernel()->set_id(absl::StrCat("j-tree/k", i));
  served.engine.SetTree("j-tree", tree);
  {
    grpc::ClientContext context;
    Bound(context);
    v1::GetTreeRequest request;
    request.set_id("j-tree");
    auto reader = stub->GetTree(&context, request);
    v1::TreeNode node;
    int count = 0;
    while (reader->Read(&node)) CHECK(node.kernel().id() == absl::StrCat("j-tree/k", count++));
    CHECK(reader->Finish().ok());
    CHECK(count == nodes);
  }
  std::string content(static_cast<std::size_t>(nodes) * 1000, 'a');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 7);
  const std::string hash = Sha256Hex(content);
  served.engine.SetArtifact(hash, content);
  grpc::ClientContext context;
  Bound(context);
  v1::GetArtifactRequest request;
  request.set_sha256(hash);
  auto reader = stub->GetArtifact(&context, request);
  v1::ArtifactChunk chunk;
  std::string got;
  while (reader->Read(&chunk)) {
    CHECK(chunk.total_bytes() == static_cast<int64_t>(content.size()));
    got += chunk.data();
  }
  CHECK(reader->Finish().ok());
  CHECK(got == content);
}

TEST_CASE("When the coordinator ends, watchers are told to come back", "[rpc]") {
  ServedEngine served;
  served.engine.AddJob("j-quiet");
  auto stub = v1::Jobs::NewStub(Dial(served.address()));
  grpc::ClientContext context;
  Bound(context);
  v1::WatchJobRequest request;
  request.set_id("j-quiet");
  auto reader = stub->WatchJob(&context, request);
  while (served.engine.waiting() == 0) std::this_thread::yield();
  std::thread ending([&] { served.End(); });
  v1::Event event;
  CHECK_FALSE(reader->Read(&event));
  const grpc::Status status = reader->Finish();
  ending.join();
  CHECK(status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(absl::StrContains(status.error_message(), "shutting down"));
}

// grpc.health.v1.Health/Check is asked {1: service}, "" for the whole server, and answers {1: status}: 1 = SERVING, 2 =
// NOT_SERVING.
int HealthOf(const std::shared_ptr<grpc::Channel>& channel, const std::string& service = "") {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  Bound(context);
  grpc::ByteBuffer request, response;
  grpc::Slice question(
      service.empty() ? "" : absl::StrCat("\x0a", std::string(1, static_cast<char>(service.size())), service));
  request = grpc::ByteBuffer(&question, 1);
  std::promise<grpc::Status> done;
  stub.UnaryCall(&context, "/grpc.health.v1.Health/Check", grpc::StubOptions(), &request, &response,
                 [&](grpc::Status status) { done.set_value(status); });
  if (!done.get_future().get().ok()) return -1;
  std::vector<grpc::Slice> slices;
  response.Dump(&slices);
  std::string bytes;
  for (const grpc::Slice& slice : slices) bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return bytes.size() == 2 && bytes[0] == 8 ? bytes[1] : -1;
}

TEST_CASE("Health follows the server's state", "[rpc]") {
  ServedEngine served;
  auto channel = Dial(served.address());
  CHECK(HealthOf(channel) == 1);
  served.server().SetServing(false);
  CHECK(HealthOf(channel) == 2);
  for (const char* service : {"grove.v1.Jobs", "grove.v1.Bank", "grove.v1.Farm"}) {
    CAPTURE(service);
    CHECK(HealthOf(channel, service) == 2);
    served.server().SetServing(true);
    CHECK(HealthOf(channel, service) == 1);
    served.server().SetServing(false);
  }
  CHECK(HealthOf(channel, "grove.v1.Nothing") == -1);
}

TEST_CASE("A port in use, an address of nobody and a socket in use are refused by name", "[rpc]") {
  ServedEngine served;
  rpc::ServerOptions options;
  options.listen = served.address();
  auto second = rpc::Server::Start(options, {});
  CHECK(absl::IsAlreadyExists(second.status()));
  CHECK(absl::StrContains(second.status().message(), served.address()));
  CHECK(absl::StrContains(second.status().message(), "--listen"));
  options.listen = "192.0.2.1:7433";  // TEST-NET-1: nobody's
  options.insecure = true;
  CHECK(absl::IsNotFound(rpc::Server::Start(options, {}).status()));
  options.listen = "no-such-host.invalid:7433";
  CHECK(absl::StrContains(rpc::Server::Start(options, {}).status().message(), "no-such-host.invalid"));
  options.listen = "unix:/no/such/folder/socket";
  CHECK_FALSE(rpc::Server::Start(options, {}).ok());
}

TEST_CASE("A Unix socket serves like a port", "[rpc]") {
  testing::TempFolder folder;
  rpc::ServerOptions options;
  options.listen = "unix:" + (folder / "grove.sock");
  ServedEngine served(options);
  CHECK(HealthOf(Dial(options.listen)) == 1);
}

TEST_CASE("Reflection is only there when asked for", "[rpc]") {
  {
    ServedEngine plain;
    CHECK(RawCall(Dial(plain.address()), "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "")
              .error_code() == grpc::StatusCode::UNIMPLEMENTED);
  }
  rpc::ServerOptions options;
  options.reflection = true;
  ServedEngine open(options);
  CHECK(RawCall(Dial(open.address()), "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "")
            .error_code() != grpc::StatusCode::UNIMPLEMENTED);
}

// ------------------------------------------------------------------------------------------------------------- metrics

coordinator::EngineStats SomeStats() {
  coordinator::EngineStats stats;
  stats.queue_depth = 7;
  stats.queue_oldest_age_seconds = 1.5;
  stats.verdicts_total = {{"correct", 3}, {"wrong", 1}};
  stats.workers_by_state = {{"idle", 1}};
  stats.jobs_by_state = {{"running", 2}};
  stats.stage_seconds = {{"build", {0.2, 3}}, {"check", {0.1}}};
  return stats;
}

TEST_CASE("The coordinator's scrape shows the engine's state and pleases promtool", "[rpc][metrics]") {
  testing::TempFolder folder;
  testing::FakeEngine engine;
  engine.SetStats(SomeStats());
  coordinator::EngineMetrics metrics(engine, absl::Seconds(30));
  auto web = metrics::HttpEndpoint::Start(
      "127.0.0.1:0", [&] { return metrics.Collect(); }, [&] { return metrics.Health(); });
  REQUIRE(web.ok());
  const auto page = testing::HttpGet((*web)->address(), "/metrics");
  CHECK(page.code == 200);
  CHECK(absl::StrContains(page.body, "grove_queue_depth 7\n"));
  CHECK(absl::StrContains(page.body, "grove_verdicts_total{verdict=\"correct\"} 3\n"));
  CHECK(absl::StrContains(page.body, "grove_evaluation_stage_duration_seconds_count{stage=\"build\"} 2\n"));
  CHECK(testing::PromtoolComplaints(page.body, folder / "page") == "");
  // The engine hands stage times out once; they stay on the page.
  CHECK(absl::StrContains(testing::HttpGet((*web)->address(), "/metrics").body,
                          "grove_evaluation_stage_duration_seconds_count{stage=\"build\"} 2\n"));
  CHECK(testing::HttpGet((*web)->address(), "/healthz").code == 200);
  coordinator::EngineStats full = SomeStats();
  full.store_error = "disk full";
  engine.SetStats(full);
  const auto ill = testing::HttpGet((*web)->address(), "/healthz");
  CHECK(ill.code == 503);
  CHECK(absl::StrContains(ill.body, "disk full"));
  engine.SetStats(SomeStats());
  metrics.SetDraining();
  CHECK(testing::HttpGet((*web)->address(), "/healthz").code == 503);
}

TEST_CASE("A hung engine costs a scrape its deadline and loses no stage times", "[rpc][metrics]") {
  testing::FakeEngine engine;
  engine.SetStats(SomeStats());
  coordinator::EngineMetrics metrics(engine, absl::Milliseconds(20));
  engine.Pause(true);
  auto has = [](const metrics::Families& families, const std::string& name) {
    return std::any_of(families.begin(), families.end(), [&](const auto& family) { return family.name == name; });
  };
  CHECK_FALSE(has(metrics.Collect(), "grove_queue_depth"));
  CHECK(absl::IsUnavailable(metrics.Health()));
  engine.Pause(false);
  // The late answers are worked off before this one.
  engine.AddJob("j-sync");
  coordinator::EngineMetrics patient(engine, absl::Seconds(30));
  CHECK(has(patient.Collect(), "grove_queue_depth"));
  metrics::Families late;
  do {
    late = metrics.Collect();
  } while (!has(late, "grove_queue_depth"));
  CHECK(has(late, "grove_evaluation_stage_duration_seconds"));
}

}  // namespace
}  // namespace grove
