#include "coordinator/llm/openai_client.h"

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <thread>

#include "coordinator/llm/curl_transport.h"
#include "tests/support/fake_clock.h"
#include "tests/support/http_server.h"

namespace grove::llm {
namespace {

using testing::ChatReply;
using testing::HttpReply;
using testing::HttpServer;
using Manner = HttpReply::Manner;

constexpr char kKeyVariable[] = "GROVE_TEST_API_KEY";
constexpr char kKey[] = "sk-test-0123456789abcdefghijklmnop";

// Moves the fake clock in place of waiting, and remembers for how long.
class FakeSleeper : public Sleeper {
 public:
  explicit FakeSleeper(testing::FakeClock& clock) : clock_(clock) {}
  bool Sleep(absl::Duration duration, CancelToken& cancel) override {
    slept.push_back(duration);
    clock_.Advance(duration);
    return !cancel.cancelled();
  }
  std::vector<absl::Duration> slept;

 private:
  testing::FakeClock& clock_;
};

// A client against a local server, with the clock, the waiting and the dice in the test's hands.
struct Bench {
  Bench() {
    setenv(kKeyVariable, kKey, 1);
    settings.base_url = server.base_url();
    settings.api_key_env = kKeyVariable;
    settings.model = "m";
    deps.transport = std::make_shared<CurlTransport>();
    deps.sleeper = sleeper;
    deps.clock = &clock;
    deps.random = [this] { return unit; };
  }
  ~Bench() { unsetenv(kKeyVariable); }

  std::unique_ptr<OpenAiClient> Client() { return std::make_unique<OpenAiClient>(settings, job_url(), deps); }
  absl::StatusOr<Completion> Ask() { return Client()->Complete({{"user", "hello"}}, {"m", 0, 0}); }
  std::string job_url() const { return other_url.empty() ? settings.base_url : other_url; }

  HttpServer server;
  testing::FakeClock clock;
  std::shared_ptr<FakeSleeper> sleeper = std::make_shared<FakeSleeper>(clock);
  Settings settings;
  std::string other_url;
  double unit = 0.5;
  OpenAiDeps deps;
};

HttpReply Error(int status, std::vector<std::pair<std::string, std::string>> headers = {}) {
  HttpReply reply;
  reply.status = status;
  reply.body = R"({"error":{"message":"because"}})";
  reply.headers = std::move(headers);
  return reply;
}

HttpReply Misbehaving(Manner manner) {
  HttpReply reply = ChatReply("an answer that will not arrive whole");
  reply.manner = manner;
  return reply;
}

TEST_CASE("A call posts the conversation with the key and returns text and token counts", "[llm]") {
  Bench bench;
  bench.server.Queue(ChatReply("the answer"));
  absl::StatusOr<Completion> done = bench.Client()->Complete({{"system", "s"}, {"user", "u"}}, {"m-1", 0.25, 700});
  REQUIRE(done.ok());
  CHECK(done->text == "the answer");
  CHECK(done->model == "test-model-2026");
  CHECK(done->prompt_tokens == 120);
  CHECK(done->completion_tokens == 34);
  CHECK_FALSE(done->usage_estimated);
  CHECK(done->attempts == 1);
  const auto requests = bench.server.requests();
  REQUIRE(requests.size() == 1);
  CHECK(requests[0].method == "POST");
  CHECK(requests[0].path == "/v1/chat/completions");
  CHECK(requests[0].headers.at("authorization") == std::string("Bearer ") + kKey);
  CHECK(requests[0].headers.at("content-type") == "application/json");
  const auto body = nlohmann::json::parse(requests[0].body);
  CHECK(body["model"] == "m-1");
  CHECK(body["temperature"] == 0.25);
  CHECK(body["max_tokens"] == 700);
  CHECK(body["messages"].size() == 2);
  CHECK(bench.sleeper->slept.empty());
}

TEST_CASE("A body of megabytes is sent without waiting for permission", "[llm]") {
  Bench bench;
  bench.server.Queue(ChatReply("ok"));
  REQUIRE(bench.Client()->Complete({{"user", std::string(3 << 20, 'x')}}, {"m", 0, 0}).ok());
  CHECK(bench.server.requests()[0].body.size() > (3u << 20));
  CHECK(bench.server.requests()[0].headers.count("expect") == 0);
}

TEST_CASE("Being rate-limited waits as long as Retry-After asks, in seconds, milliseconds or as a date", "[llm]") {
  Bench bench;
  const absl::Time later = bench.clock.Now() + absl::Seconds(100);
  const auto [headers, expected] =
      GENERATE_COPY(values<std::pair<std::vector<std::pair<std::string, std::string>>, absl::Duration>>(
          {{{{"Retry-After", "7"}}, absl::Seconds(7)},
           {{{"Retry-After", "8"}, {"retry-after-ms", "1500"}}, absl::Milliseconds(1500)},
           {{{"retry-after", absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT", later, absl::UTCTimeZone())}},
            absl::Seconds(100)}}));
  bench.server.Queue(Error(429, headers));
  bench.server.Queue(ChatReply("ok"));
  absl::StatusOr<Completion> done = bench.Ask();
  REQUIRE(done.ok());
  CHECK(done->attempts == 2);
  REQUIRE(bench.sleeper->slept.size() == 1);
  CHECK(bench.sleeper->slept[0] == expected + 0.5 * bench.settings.backoff_initial);
  CHECK(done->seconds == Approx(absl::ToDoubleSeconds(bench.sleeper->slept[0])));
}

TEST_CASE("Without Retry-After, or with a senseless one, the waits double under full jitter", "[llm]") {
  Bench bench;
  bench.server.Queue(Error(500));
  bench.server.Queue(Error(503, {{"Retry-After", "when it suits"}}));
  bench.server.Queue(Error(429));
  bench.server.Queue(Error(408));
  bench.server.Queue(ChatReply("ok"));
  REQUIRE(bench.Ask().ok());
  CHECK(bench.sleeper->slept ==
        std::vector<absl::Duration>{absl::Seconds(0.5), absl::Seconds(1), absl::Seconds(2), absl::Seconds(4)});
}

TEST_CASE("After the last attempt the outage is reported, and which kind", "[llm]") {
  Bench bench;
  bench.settings.max_attempts = 3;
  SECTION("failing server") {
    bench.server.Handle([](const auto&) { return Error(502); });
    const absl::Status status = bench.Ask().status();
    CHECK(status.code() == absl::StatusCode::kUnavailable);
    CHECK(status.message().find("3 attempts") != absl::string_view::npos);
  }
  SECTION("rate limit") {
    bench.server.Handle([](const auto&) { return Error(429); });
    CHECK(bench.Ask().status().code() == absl::StatusCode::kResourceExhausted);
  }
  CHECK(bench.server.requests().size() == 3);
}

TEST_CASE("A wait that would pass the deadline is not begun", "[llm]") {
  Bench bench;
  bench.settings.total_deadline = absl::Seconds(60);
  bench.server.Queue(Error(429, {{"Retry-After", "61"}}));
  const absl::Status status = bench.Ask().status();
  CHECK(status.code() == absl::StatusCode::kResourceExhausted);
  CHECK(status.message().find("longer than the call may still take") != absl::string_view::npos);
  CHECK(bench.sleeper->slept.empty());
  CHECK(bench.server.requests().size() == 1);
}

TEST_CASE("The deadline holds over all attempts together", "[llm]") {
  Bench bench;
  bench.settings.total_deadline = absl::Seconds(100);
  bench.settings.max_attempts = 100;
  bench.server.Handle([](const auto&) { return Error(503, {{"Retry-After", "30"}}); });
  CHECK(bench.Ask().status().code() == absl::StatusCode::kUnavailable);
  CHECK(bench.server.requests().size() == 4);  // at 0, 30.5, 61 and 91.5 s
}

TEST_CASE("Errors that can never pass are not tried again", "[llm]") {
  Bench bench;
  const auto [status, code] = GENERATE(table<int, absl::StatusCode>({{400, absl::StatusCode::kInvalidArgument},
                                                                     {401, absl::StatusCode::kUnauthenticated},
                                                                     {402, absl::StatusCode::kResourceExhausted},
                                                                     {403, absl::StatusCode::kUnauthenticated},
                                                                     {404, absl::StatusCode::kInvalidArgument}}));
  CAPTURE(status);
  bench.server.Queue(Error(status));
  CHECK(bench.Ask().status().code() == code);
  CHECK(bench.server.requests().size() == 1);
}

TEST_CASE("A redirect is refused, names its target, and is not followed", "[llm]") {
  Bench bench;
  HttpServer elsewhere;
  bench.server.Queue(Error(307, {{"Location", elsewhere.base_url() + "/chat/completions"}}));
  const absl::Status status = bench.Ask().status();
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK(status.message().find(elsewhere.base_url()) != absl::string_view::npos);
  CHECK(elsewhere.requests().empty());
}

TEST_CASE("A port where something else than HTTP answers is the wrong URL", "[llm]") {
  Bench bench;
  HttpReply greeting = Misbehaving(Manner::kRaw);
  greeting.body = "SSH-2.0-OpenSSH_9.2\r\n";
  bench.server.Queue(greeting);
  const absl::Status status = bench.Ask().status();
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK(status.message().find("check the base URL") != absl::string_view::npos);
}

TEST_CASE("A connection that is closed or cut off in the body is tried again", "[llm]") {
  Bench bench;
  bench.server.Queue(Misbehaving(GENERATE(Manner::kClose, Manner::kCutOff)));
  bench.server.Queue(ChatReply("second time"));
  absl::StatusOr<Completion> done = bench.Ask();
  REQUIRE(done.ok());
  CHECK(done->text == "second time");
  CHECK(done->attempts == 2);
}

TEST_CASE("An answer with nothing in it is asked for again, and not for ever", "[llm]") {
  Bench bench;
  bench.settings.max_attempts = 3;
  const std::string empty = "{\"choices\": []}";
  SECTION("once") {
    bench.server.Queue({.body = empty});
    bench.server.Queue(ChatReply("second time"));
    absl::StatusOr<Completion> done = bench.Ask();
    REQUIRE(done.ok());
    CHECK(done->text == "second time");
    CHECK(done->attempts == 2);
  }
  SECTION("always") {
    bench.server.Handle([&](const auto&) { return HttpReply{.body = empty}; });
    const absl::Status status = bench.Ask().status();
    CHECK(status.code() == absl::StatusCode::kDataLoss);
    CHECK(status.message().find("no choices") != absl::string_view::npos);
    CHECK(bench.server.requests().size() == 3);
  }
}

TEST_CASE("A server that is not there is an outage", "[llm]") {
  Bench bench;
  bench.settings.max_attempts = 2;
  int port = 0;
  {
    HttpServer gone;
    port = gone.port();
  }
  bench.settings.base_url = "http://127.0.0.1:" + std::to_string(port) + "/v1";
  const absl::Status status = bench.Ask().status();
  CHECK(status.code() == absl::StatusCode::kUnavailable);
  CHECK(status.message().find("127.0.0.1:" + std::to_string(port)) != absl::string_view::npos);
  CHECK(bench.sleeper->slept.size() == 1);
}

TEST_CASE("Silence ends after its own limit, before and inside the body, and so does a drip", "[llm]") {
  Bench bench;
  bench.settings.max_attempts = 1;
  SECTION("before the body") {
    bench.settings.first_byte_timeout = absl::Milliseconds(150);
    bench.server.Queue(Misbehaving(Manner::kSilence));
    const absl::Status status = bench.Ask().status();
    CHECK(status.code() == absl::StatusCode::kUnavailable);
    CHECK(status.message().find("within 0.15 s") != absl::string_view::npos);
  }
  SECTION("inside the body") {
    bench.settings.stall_timeout = absl::Milliseconds(150);
    bench.server.Queue(Misbehaving(Manner::kStallInBody));
    const absl::Status status = bench.Ask().status();
    CHECK(status.code() == absl::StatusCode::kUnavailable);
    CHECK(status.message().find("stalled") != absl::string_view::npos);
  }
  SECTION("a byte now and then") {
    bench.settings.attempt_timeout = absl::Milliseconds(250);
    bench.server.Queue(Misbehaving(Manner::kDrip));
    const absl::Status status = bench.Ask().status();
    CHECK(status.code() == absl::StatusCode::kUnavailable);
    CHECK(status.message().find("not complete after 0.25 s") != absl::string_view::npos);
  }
}

TEST_CASE("An answer above the limit is dropped where the limit is reached", "[llm]") {
  Bench bench;
  bench.settings.max_response_bytes = 4096;
  SECTION("of known length") { bench.server.Queue(ChatReply(std::string(100'000, 'x'))); }
  SECTION("without end") { bench.server.Queue(Misbehaving(Manner::kDrip)); }
  const absl::Status status = bench.Ask().status();
  CHECK(status.code() == absl::StatusCode::kDataLoss);
  CHECK(status.message().find("larger than 4096 bytes") != absl::string_view::npos);
  CHECK(bench.server.requests().size() == 1);
}

TEST_CASE("Nonsense with status 200 is DATA_LOSS at the first time and says what came", "[llm]") {
  Bench bench;
  HttpReply reply;
  reply.content_type = "text/html";
  reply.body = "<html><h1>Welcome to the captive portal</h1></html>";
  bench.server.Queue(reply);
  const absl::Status status = bench.Ask().status();
  CHECK(status.code() == absl::StatusCode::kDataLoss);
  CHECK(status.message().find("text/html") != absl::string_view::npos);
  CHECK(status.message().find("captive portal") != absl::string_view::npos);
  CHECK(bench.server.requests().size() == 1);
}

TEST_CASE("The key goes to the coordinator's own endpoint only", "[llm]") {
  Bench bench;
  HttpServer other;
  other.Queue(ChatReply("ok"));
  bench.other_url = other.base_url();
  REQUIRE(bench.Ask().ok());
  REQUIRE(other.requests().size() == 1);
  CHECK(other.requests()[0].headers.count("authorization") == 0);
  CHECK(other.requests()[0].body.find(kKey) == std::string::npos);
}

TEST_CASE("A server that echoes the key gets it into no answer and no message", "[llm]") {
  Bench bench;
  bench.settings.max_attempts = 1;
  const std::string echo = std::string("your key is ") + kKey;
  HttpReply refused;
  refused.body = R"({"error":{"message":")" + echo + R"("}})";
  refused.status = GENERATE(200, 301, 400, 401, 403, 404, 429, 500);
  if (refused.status == 301) refused.headers = {{"Location", std::string("http://x/?k=") + kKey}};
  bench.server.Queue(refused);
  bench.server.Queue(ChatReply(echo));
  const absl::Status status = bench.Ask().status();
  REQUIRE_FALSE(status.ok());
  CHECK(status.ToString().find(kKey) == std::string::npos);
  absl::StatusOr<Completion> done = bench.Ask();
  REQUIRE(done.ok());
  CHECK(done->text == "your key is [key]");
}

TEST_CASE("Without a key a server elsewhere is not even called, and one on loopback is called without", "[llm]") {
  Bench bench;
  unsetenv(kKeyVariable);
  SECTION("loopback") {
    bench.server.Queue(ChatReply("local model"));
    REQUIRE(bench.Ask().ok());
    CHECK(bench.server.requests()[0].headers.count("authorization") == 0);
  }
  SECTION("elsewhere") {
    bench.settings.base_url = "https://llm.invalid/v1";
    const absl::Status status = bench.Ask().status();
    CHECK(status.code() == absl::StatusCode::kUnauthenticated);
    CHECK(status.message().find(kKeyVariable) != absl::string_view::npos);
    CHECK(bench.sleeper->slept.empty());
  }
}

TEST_CASE("Loopback is called directly whatever proxy the environment names", "[llm]") {
  Bench bench;
  HttpServer proxy;
  setenv("http_proxy", ("http://127.0.0.1:" + std::to_string(proxy.port())).c_str(), 1);
  setenv("all_proxy", ("http://127.0.0.1:" + std::to_string(proxy.port())).c_str(), 1);
  bench.server.Queue(ChatReply("direct"));
  absl::StatusOr<Completion> done = bench.Ask();
  unsetenv("http_proxy");
  unsetenv("all_proxy");
  REQUIRE(done.ok());
  CHECK(proxy.requests().empty());
}

TEST_CASE("A server elsewhere is called through the proxy that the environment names", "[llm]") {
  Bench bench;
  HttpServer proxy;
  setenv("http_proxy", ("http://127.0.0.1:" + std::to_string(proxy.port())).c_str(), 1);
  bench.settings.base_url = "http://llm.invalid/v1";
  proxy.Queue(ChatReply("through the proxy"));
  absl::StatusOr<Completion> done = bench.Ask();
  unsetenv("http_proxy");
  REQUIRE(done.ok());
  CHECK(done->text == "through the proxy");
  REQUIRE(proxy.requests().size() == 1);
  CHECK(proxy.requests()[0].path == "http://llm.invalid/v1/chat/completions");
}

TEST_CASE("Cancelling ends a call that waits for an answer and makes later ones fail", "[llm]") {
  Bench bench;
  bench.server.Handle([](const auto&) { return Misbehaving(Manner::kSilence); });
  std::unique_ptr<OpenAiClient> client = bench.Client();
  bench.server.OnRequest([&] { client->Cancel(); });
  CHECK(client->Complete({{"user", "hello"}}, {"m", 0, 0}).status().code() == absl::StatusCode::kCancelled);
  CHECK(client->Complete({{"user", "hello"}}, {"m", 0, 0}).status().code() == absl::StatusCode::kCancelled);
  CHECK(bench.server.requests().size() == 1);
}

TEST_CASE("Cancelling ends a call that waits to try again", "[llm]") {
  Bench bench;
  bench.deps.sleeper = std::make_shared<SystemSleeper>();
  bench.server.Handle([](const auto&) { return Error(429, {{"Retry-After", "1000"}}); });
  std::unique_ptr<OpenAiClient> client = bench.Client();
  bench.server.OnRequest([&] { client->Cancel(); });
  CHECK(client->Complete({{"user", "hello"}}, {"m", 0, 0}).status().code() == absl::StatusCode::kCancelled);
}

TEST_CASE("One client serves many threads, each with its own answer", "[llm]") {
  Bench bench;
  bench.server.Handle([](const testing::HttpRecord& record) {
    return ChatReply("echo " + nlohmann::json::parse(record.body)["messages"][0]["content"].get<std::string>());
  });
  std::unique_ptr<OpenAiClient> client = bench.Client();
  std::vector<std::string> answers(24);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < answers.size(); ++i) {
    threads.emplace_back([&, i] {
      absl::StatusOr<Completion> done = client->Complete({{"user", std::to_string(i)}}, {"m", 0, 0});
      answers[i] = done.ok() ? done->text : done.status().ToString();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < answers.size(); ++i) CHECK(answers[i] == "echo " + std::to_string(i));
}

}  // namespace
}  // namespace grove::llm
