// A process with an engine and a worker in it, killed by SIGKILL at a random moment, again and again.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "tests/coordinator_core/harness.h"

namespace grove::testing {
namespace {

coordinator::EngineDependencies Dependencies(const std::string& dir) {
  coordinator::EngineDependencies deps;
  deps.clock = &SystemClock::Get();
  auto store = store::OpenSqliteStore(dir);
  if (!store.ok()) _exit(3);
  deps.store = *std::move(store);
  deps.make_generator = [](const v1::GeneratorSpec&) { return std::make_shared<FakeGenerator>(); };
  deps.make_policy = [](const v1::SearchPolicy& spec) { return std::make_unique<SmallPolicy>(spec); };
  deps.with_defaults = [](const v1::SearchPolicy& spec) { return spec; };
  return deps;
}

// The one job that a key stands for.
v1::SubmitJobRequest JobOfKey(const std::string& key) {
  return EvalJob(key, {absl::StrCat("int ", key.substr(0, key.find('-')), "_", key.substr(key.find('-') + 1), ";"),
                       "int b;", "int b;"});
}

// Writes "J key id" and "A lease" lines as jobs and results are acknowledged; never returns.
[[noreturn]] void Child(const std::string& dir, int out, int life) {
  SetLogLevel(LogLevel::kError);
  coordinator::EngineOptions options;
  options.data_dir = dir;
  options.max_attempts = 1000;
  auto engine = coordinator::CreateEngine(options, Dependencies(dir));
  if (!engine.ok()) _exit(4);
  const auto line = [out](const std::string& text) {
    const std::string whole = text + "\n";
    if (write(out, whole.data(), whole.size()) < 0) _exit(5);
  };
  auto link = std::make_shared<FakeWorkerLink>();
  v1::WorkerHello hello;
  hello.set_worker_id("w");
  hello.set_protocol(1);
  hello.set_capacity(4);
  hello.mutable_device()->set_kind(v1::DEVICE_KIND_CPU);
  const uint64_t session = (*engine)->WorkerConnected(hello, link);
  std::thread submitter([&] {
    for (int i = 0;; ++i) {
      const std::string key = absl::StrCat("life", life, "-", i);
      auto response = Wait<v1::SubmitJobResponse>([&](auto reply) { (*engine)->SubmitJob(JobOfKey(key), reply); });
      if (!response.ok()) _exit(6);
      line(absl::StrCat("J ", key, " ", response->job().id()));
    }
  });
  for (;;) {
    auto message = link->Next();
    if (!message.has_value()) continue;
    if (message->has_ack() && !message->ack().stale()) {
      line(absl::StrCat("A ", message->ack().lease().work(), " ", message->ack().lease().attempt()));
    }
    if (!message->has_assignment()) continue;
    v1::WorkerMessage said;
    *said.mutable_result()->mutable_lease() = message->assignment().lease();
    *said.mutable_result()->mutable_evaluation() = Correct(2);
    (*engine)->WorkerSaid(session, std::move(said));
  }
}

TEST_CASE("Killed at any moment, the coordinator has everything that it acknowledged, once", "[crash]") {
  const unsigned seed = 20260101;
  CAPTURE(seed);
  std::mt19937 random(seed);
  TempDir dir;
  std::map<std::string, std::string> jobs;  // key -> id
  std::set<std::string> acknowledged;       // "work attempt"
  for (int life = 0; life < 15; ++life) {
    int pipe_fds[2];
    REQUIRE(pipe(pipe_fds) == 0);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      close(pipe_fds[0]);
      Child(dir.path(), pipe_fds[1], life);
    }
    close(pipe_fds[1]);
    // Killed after so many bytes of acknowledgements: a moment of its work and not of the clock.
    const size_t enough = 1 + random() % 3000;
    std::string text;
    bool killed = false;
    char chunk[512];
    for (ssize_t n; (n = read(pipe_fds[0], chunk, sizeof(chunk))) > 0;) {
      text.append(chunk, static_cast<size_t>(n));
      if (text.size() >= enough && !killed) {
        kill(child, SIGKILL);
        killed = true;
      }
    }
    close(pipe_fds[0]);
    int status = 0;
    waitpid(child, &status, 0);
    REQUIRE(WIFSIGNALED(status));
    text.resize(text.rfind('\n') + 1);
    for (size_t at = 0; at < text.size();) {
      const size_t end = text.find('\n', at);
      const std::string line = text.substr(at, end - at);
      at = end + 1;
      if (line[0] == 'A') {
        acknowledged.insert(line.substr(2));
      } else {
        const size_t blank = line.find(' ', 2);
        jobs[line.substr(2, blank - 2)] = line.substr(blank + 1);
      }
    }
  }
  REQUIRE(jobs.size() > 15);
  REQUIRE(acknowledged.size() > 15);
  Harness h;  // for its calls; the engine under test is on the killed one's folder
  h.engine.reset();
  coordinator::EngineOptions options;
  options.data_dir = dir.path();
  options.max_attempts = 1000;
  coordinator::EngineDependencies deps = Dependencies(dir.path());
  deps.clock = &h.clock;
  auto engine = coordinator::CreateEngine(options, std::move(deps));
  REQUIRE(engine.ok());
  h.engine = *std::move(engine);
  // Each key gives its job.
  for (const auto& [key, id] : jobs) {
    auto again = h.Submit(JobOfKey(key));
    REQUIRE(again.ok());
    CHECK(again->existed());
    CHECK(again->job().id() == id);
    CHECK(h.Submit(EvalJob(key, {"int other;"})).status().code() == absl::StatusCode::kFailedPrecondition);
  }
  Worker worker(h, "w", 64);
  worker.Connect();
  std::set<std::string> open;
  for (const auto& [key, id] : jobs) {
    if (h.Get(id)->state() != v1::JOB_STATE_DONE) open.insert(id);
  }
  while (!open.empty()) {
    worker.Beat({});
    h.Advance(absl::Seconds(10));  // work that was lost several times waits up to half a minute
    while (auto message = worker.link->TryNext()) {
      if (message->has_assignment()) worker.Finish(message->assignment().lease(), Correct(2));
      h.Settle();
    }
    std::erase_if(open, [&](const std::string& id) { return h.Get(id)->state() == v1::JOB_STATE_DONE; });
  }
  for (const auto& [key, id] : jobs) {
    std::map<std::string, int> finished;
    for (const v1::Event& event : h.Watch(id)) {
      if (!event.has_evaluation_finished()) continue;
      const v1::EvaluationFinished& end = event.evaluation_finished();
      ++finished[end.kernel()];
      acknowledged.erase(absl::StrCat(end.kernel(), " ", end.attempt()));
    }
    CHECK(finished.size() == 3);
    for (const auto& [kernel, count] : finished) CHECK(count == 1);
  }
  // Results acknowledged for jobs whose own acknowledgement was cut off by the kill are in the journal too.
  for (const std::string& one : acknowledged) {
    auto kernel = h.Kernel(one.substr(0, one.find(' ')));
    REQUIRE(kernel.ok());
    CHECK(kernel->state() == v1::NODE_STATE_DONE);
    CHECK(absl::StrCat(kernel->id(), " ", kernel->result().attempt()) == one);
  }
}

}  // namespace
}  // namespace grove::testing
