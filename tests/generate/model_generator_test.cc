#include "coordinator/generate/model_generator.h"

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "coordinator/generate/factory.h"
#include "coordinator/generate/recording.h"
#include "coordinator/generate/replay.h"
#include "coordinator/generate/usage_status.h"
#include "tests/generate/fixtures.h"
#include "tests/support/http_server.h"

namespace grove::generate {
namespace {

using testing::ChatReply;
using testing::HttpServer;

constexpr char kKey[] = "sk-generate-0123456789abcdefghij";

// A generator made by the factory, against a local server.
struct Bench {
  explicit Bench(bool with_key = true) {
    if (with_key) setenv("GROVE_TEST_GENERATE_KEY", kKey, 1);
    options.llm.base_url = server.base_url();
    options.llm.api_key_env = "GROVE_TEST_GENERATE_KEY";
    options.llm.max_attempts = 1;
    v1::GeneratorSpec spec;
    spec.set_kind(v1::GENERATOR_KIND_OPENAI);
    spec.set_model("test-model");
    spec.set_temperature(0.5);
    auto made = MakeGenerator(spec, options);
    REQUIRE(made.ok());
    generator = *std::move(made);
  }
  ~Bench() { unsetenv("GROVE_TEST_GENERATE_KEY"); }
  HttpServer server;
  FactoryOptions options;
  std::unique_ptr<Generator> generator;
};

IdeaRequest Ideas(const std::string& request, int count) {
  IdeaRequest out;
  out.request = request;
  out.count = count;
  return out;
}

KernelRequest Kernel(const std::string& request, const v1::IdeaNode& idea, int variant) {
  KernelRequest out;
  out.request = request;
  out.idea = idea;
  out.variant = variant;
  return out;
}

TEST_CASE("A model's answers become ideas and kernels, with what they cost", "[generate]") {
  Bench bench;
  REQUIRE(bench.generator->Supports(SmallContext()).ok());
  bench.server.Queue(ChatReply(kIdeasAnswer));
  absl::StatusOr<IdeasAnswer> ideas = bench.generator->ProposeIdeas(SmallContext(), Ideas("r0/p/ideas", 2));
  REQUIRE(ideas.ok());
  REQUIRE(ideas->ideas.size() == 2);
  CHECK(ideas->usage.calls == 1);
  CHECK(ideas->usage.prompt_tokens == 120);
  CHECK(ideas->usage.completion_tokens == 34);
  CHECK(ideas->usage.model == "test-model-2026");
  bench.server.Queue(ChatReply(kKernelAnswer));
  absl::StatusOr<KernelAnswer> kernel =
      bench.generator->WriteKernel(SmallContext(), Kernel("j/i0/v0", ideas->ideas[0], 0));
  REQUIRE(kernel.ok());
  CHECK(kernel->kernel.candidate().format() == v1::CANDIDATE_FORMAT_CPP);
  const auto asked = nlohmann::json::parse(bench.server.requests()[1].body);
  CHECK(asked["model"] == "test-model");
  CHECK(asked["temperature"] == 0.5);
  CHECK(asked["messages"][1]["content"].get<std::string>().find("Use wide loads.") != std::string::npos);
}

TEST_CASE("A recorded search replays into identical nodes", "[generate]") {
  Bench bench;
  int served = 0;
  bench.server.Handle([&](const testing::HttpRecord& record) {
    const std::string prompt = nlohmann::json::parse(record.body)["messages"][1]["content"];
    if (prompt.find("new ideas") != std::string::npos) return ChatReply(kIdeasAnswer);
    const std::string number = std::to_string(served++);
    return ChatReply("Number " + number + ".\n```cpp\n#include <grove/kernel.h>\nGROVE_KERNEL(args) { return " +
                     number + "; }\n```\n");
  });
  struct Nodes {
    std::vector<std::string> all;
    std::string recording;
  };
  const auto search = [](Generator& generator) {
    Nodes out;
    for (int round = 0; round < 3; ++round) {
      const std::string key = "r" + std::to_string(round) + "/p/ideas";
      absl::StatusOr<IdeasAnswer> ideas = generator.ProposeIdeas(SmallContext(), Ideas(key, 2));
      REQUIRE(ideas.ok());
      out.recording += ideas->usage.exchange;
      for (const v1::IdeaNode& idea : ideas->ideas) {
        out.all.push_back(idea.SerializeAsString());
        for (int variant = 0; variant < 2; ++variant) {
          const std::string name = idea.title() + std::to_string(round) + "/v" + std::to_string(variant);
          absl::StatusOr<KernelAnswer> kernel = generator.WriteKernel(SmallContext(), Kernel(name, idea, variant));
          REQUIRE(kernel.ok());
          out.recording += kernel->usage.exchange;
          out.all.push_back(kernel->kernel.SerializeAsString());
        }
      }
    }
    return out;
  };
  const Nodes recorded = search(*bench.generator);
  CHECK(recorded.all.size() == 18);
  CHECK(served == 12);
  CHECK(recorded.recording.find(kKey) == std::string::npos);
  CHECK(recorded.recording.find("Authorization") == std::string::npos);

  const size_t calls = bench.server.requests().size();
  v1::GeneratorSpec spec;
  spec.set_kind(v1::GENERATOR_KIND_REPLAY);
  spec.set_recording(recorded.recording);
  auto replay = MakeGenerator(spec, FactoryOptions{});
  REQUIRE(replay.ok());
  REQUIRE((*replay)->Supports(SmallContext()).ok());
  CHECK(search(**replay).all == recorded.all);
  CHECK(bench.server.requests().size() == calls);
}

TEST_CASE("An answer of no use is still accounted for and recorded", "[generate]") {
  Bench bench;
  bench.server.Queue(ChatReply("I would rather write a poem."));
  const absl::Status status = bench.generator->ProposeIdeas(SmallContext(), Ideas("r0/p/ideas", 2)).status();
  CHECK(status.code() == absl::StatusCode::kDataLoss);
  CHECK(status.message().find("poem") != absl::string_view::npos);
  const Usage usage = UsageOf(status);
  CHECK(usage.calls == 1);
  CHECK(usage.prompt_tokens == 120);
  CHECK(usage.completion_tokens == 34);
  absl::StatusOr<std::vector<Exchange>> exchanges = ParseRecording(usage.exchange);
  REQUIRE(exchanges.ok());
  CHECK(exchanges->front().answer == "I would rather write a poem.");
  CHECK(UsageOf(absl::InternalError("x")).calls == 0);
}

TEST_CASE("An answer cut off at the token limit says so", "[generate]") {
  Bench bench;
  testing::HttpReply reply;
  reply.body =
      R"({"choices":[{"finish_reason":"length","message":{"content":"```cpp\nGROVE_KERNEL(args) {\n  int"}}]})";
  bench.server.Queue(reply);
  const absl::Status status = bench.generator->WriteKernel(SmallContext(), Kernel("k", {}, 0)).status();
  CHECK(status.code() == absl::StatusCode::kDataLoss);
  CHECK(status.message().find("token limit") != absl::string_view::npos);
  CHECK(UsageOf(status).estimated);
}

TEST_CASE("An outage reaches the engine as one, and a refused key as something to act on", "[generate]") {
  Bench bench;
  testing::HttpReply reply;
  reply.status = 503;
  bench.server.Queue(reply);
  CHECK(bench.generator->ProposeIdeas(SmallContext(), Ideas("r", 1)).status().code() == absl::StatusCode::kUnavailable);
  reply.status = 401;
  bench.server.Queue(reply);
  CHECK(bench.generator->ProposeIdeas(SmallContext(), Ideas("r", 1)).status().code() ==
        absl::StatusCode::kUnauthenticated);
}

TEST_CASE("Cancelling a generator ends its call", "[generate]") {
  Bench bench;
  testing::HttpReply silence;
  silence.manner = testing::HttpReply::Manner::kSilence;
  bench.server.Queue(silence);
  bench.server.OnRequest([&] { bench.generator->Cancel(); });
  CHECK(bench.generator->ProposeIdeas(SmallContext(), Ideas("r", 1)).status().code() == absl::StatusCode::kCancelled);
}

TEST_CASE("A device without native kernels, or a problem without outputs, is not supported", "[generate]") {
  Bench bench;
  Context context = SmallContext();
  context.device.set_kind(v1::DEVICE_KIND_UNSPECIFIED);
  CHECK(bench.generator->Supports(context).code() == absl::StatusCode::kFailedPrecondition);
  context = SmallContext();
  context.description.clear_outputs();
  CHECK(bench.generator->Supports(context).code() == absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace grove::generate
