#include "coordinator/llm/openai_wire.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <random>

#include "coordinator/llm/text.h"

namespace grove::llm {
namespace {

using nlohmann::json;

HttpResponse Ok(const std::string& body) {
  HttpResponse response;
  response.status = 200;
  response.content_type = "application/json";
  response.body = body;
  return response;
}

absl::StatusOr<Completion> Parse(const std::string& body, Rejection* rejection = nullptr) {
  Rejection ignored;
  CompletionParams params;
  params.model = "asked-model";
  return ParseChatResponse(Ok(body), params, 400, rejection != nullptr ? rejection : &ignored);
}

TEST_CASE("A request holds model, messages and only the parameters that were set", "[llm]") {
  const std::vector<Message> messages = {{"system", "be brief"}, {"user", "a \"quote\"\nand \xFF"}};
  json body = json::parse(ChatRequestBody(messages, {"m", 0, 0}, "max_tokens"));
  CHECK(body["model"] == "m");
  CHECK(body["stream"] == false);
  CHECK(body["messages"][0]["role"] == "system");
  CHECK(body["messages"][1]["content"] == "a \"quote\"\nand \xEF\xBF\xBD");
  CHECK_FALSE(body.contains("temperature"));
  CHECK_FALSE(body.contains("max_tokens"));
  body = json::parse(ChatRequestBody(messages, {"m", 0.7, 9000}, "max_completion_tokens"));
  CHECK(body["temperature"] == 0.7);
  CHECK(body["max_completion_tokens"] == 9000);
}

TEST_CASE("An answer gives text, model, token counts and why it ended", "[llm]") {
  absl::StatusOr<Completion> done = Parse(
      R"({"model":"m-7","choices":[{"finish_reason":"length","message":{"content":"hello"}}],
          "usage":{"prompt_tokens":100,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":64}}})");
  REQUIRE(done.ok());
  CHECK(done->text == "hello");
  CHECK(done->model == "m-7");
  CHECK(done->truncated);
  CHECK(done->prompt_tokens == 100);
  CHECK(done->completion_tokens == 5);
  CHECK(done->cached_prompt_tokens == 64);
  CHECK_FALSE(done->usage_estimated);
}

TEST_CASE("An answer without counts, or with senseless ones, is counted by its length and says so", "[llm]") {
  for (const std::string usage : {R"({})", R"(null)", R"({"prompt_tokens":-1,"completion_tokens":3})",
                                  R"({"prompt_tokens":"7","completion_tokens":3})",
                                  R"({"prompt_tokens":18446744073709551615,"completion_tokens":3})",
                                  R"({"prompt_tokens":1e99,"completion_tokens":3})"}) {
    CAPTURE(usage);
    absl::StatusOr<Completion> done = Parse(R"({"choices":[{"message":{"content":"12345"}}],"usage":)" + usage + "}");
    REQUIRE(done.ok());
    CHECK(done->usage_estimated);
    CHECK(done->prompt_tokens == 100);
    CHECK(done->completion_tokens <= 3);
    CHECK(done->completion_tokens >= 2);
    CHECK(done->model == "asked-model");
  }
}

TEST_CASE("Content in parts is joined, and leading blank lines of a waiting server do no harm", "[llm]") {
  absl::StatusOr<Completion> done = Parse(
      "\n\n\n"
      R"({"choices":[{"message":{"content":[{"type":"text","text":"a"},{"type":"image"},{"type":"text","text":"b"}]}}]})");
  REQUIRE(done.ok());
  CHECK(done->text == "ab");
}

TEST_CASE("Answers that make no sense are DATA_LOSS with what was seen", "[llm]") {
  // What is no such answer at all comes from another kind of server; one with nothing in it may have more the next
  // time.
  const std::vector<std::string> for_good = {"",
                                             "null",
                                             "[]",
                                             "{",
                                             "<html>Bad gateway</html>",
                                             R"({"choices":[{"message":{"content":null,"refusal":"no"}}]})",
                                             "{\"choices\":[{\"message\":{\"content\":\"\xFF\"}}]}",
                                             R"({"choices":[{"message":{"content":"\ud800"}}]})",
                                             R"({"choices":[{"finish_reason":"length","message":{"content":""}}]})"};
  const std::vector<std::string> for_now = {"{}",
                                            R"({"choices":[]})",
                                            R"({"choices":{}})",
                                            R"({"choices":[1]})",
                                            R"({"choices":[{}]})",
                                            R"({"choices":[{"message":"x"}]})",
                                            R"({"choices":[{"message":{"content":null}}]})",
                                            R"({"choices":[{"message":{"content":7}}]})"};
  std::vector<std::pair<std::string, bool>> bodies;
  for (const std::string& body : for_good) bodies.emplace_back(body, false);
  for (const std::string& body : for_now) bodies.emplace_back(body, true);
  for (const auto& [body, again] : bodies) {
    CAPTURE(body);
    Rejection rejection;
    absl::StatusOr<Completion> done = Parse(body, &rejection);
    REQUIRE_FALSE(done.ok());
    CHECK(done.status().code() == absl::StatusCode::kDataLoss);
    CHECK(rejection.retry == again);
    CHECK(done.status().message().size() < 1000);
  }
  CHECK(std::string(Parse("<html>Bad gateway</html>").status().message()).find("Bad gateway") != std::string::npos);
}

TEST_CASE("A gateway's error inside a 200 counts as that error", "[llm]") {
  Rejection rejection;
  CHECK(Parse(R"({"error":{"code":429,"message":"upstream busy"}})", &rejection).status().code() ==
        absl::StatusCode::kResourceExhausted);
  CHECK(rejection.retry);
  CHECK(Parse(R"({"error":{"code":401,"message":"no"}})", &rejection).status().code() ==
        absl::StatusCode::kUnauthenticated);
  CHECK_FALSE(rejection.retry);
  CHECK(Parse(R"({"error":"overloaded"})", &rejection).status().code() == absl::StatusCode::kUnavailable);
  CHECK(rejection.retry);
}

TEST_CASE("Each HTTP status has its code, its remedy and its answer to trying again", "[llm]") {
  struct Row {
    int status;
    std::string body;
    absl::StatusCode code;
    bool retry;
    std::string says;
  };
  const auto row = GENERATE(values<Row>({
      {301, "", absl::StatusCode::kInvalidArgument, false, "redirects"},
      {400, R"({"error":{"message":"bad temperature"}})", absl::StatusCode::kInvalidArgument, false, "bad temperature"},
      {400, R"({"error":{"message":"long","code":"context_length_exceeded"}})", absl::StatusCode::kInvalidArgument,
       false, "larger context"},
      {401, R"({"error":{"message":"Incorrect API key provided: sk-ab***yz"}})", absl::StatusCode::kUnauthenticated,
       false, "key file"},
      {402, "", absl::StatusCode::kResourceExhausted, false, "top it up"},
      {403, R"({"error":"region"})", absl::StatusCode::kUnauthenticated, false, "region"},
      {404, R"({"detail":"Not Found"})", absl::StatusCode::kInvalidArgument, false, "base URL"},
      {408, "", absl::StatusCode::kUnavailable, true, "408"},
      {409, "", absl::StatusCode::kUnavailable, true, "409"},
      {413, "", absl::StatusCode::kInvalidArgument, false, "too long"},
      {422, R"({"message":"field"})", absl::StatusCode::kInvalidArgument, false, "field"},
      {429, R"({"error":{"message":"slow down"}})", absl::StatusCode::kResourceExhausted, true, "slow down"},
      {429, R"({"error":{"message":"quota","code":"insufficient_quota"}})", absl::StatusCode::kResourceExhausted, false,
       "top it up"},
      {500, "<html>oops</html>", absl::StatusCode::kUnavailable, true, "oops"},
      {503, "", absl::StatusCode::kUnavailable, true, "503"},
      {999, "", absl::StatusCode::kDataLoss, false, "999"},
  }));
  CAPTURE(row.status, row.body);
  HttpResponse response;
  response.status = row.status;
  response.body = row.body;
  const Rejection rejection = ClassifyHttpError(response, "host");
  CAPTURE(rejection.status.message());
  CHECK(rejection.status.code() == row.code);
  CHECK(rejection.retry == row.retry);
  CHECK(rejection.status.message().find(row.says) != absl::string_view::npos);
  CHECK(rejection.status.message().find("sk-ab") == absl::string_view::npos);
}

TEST_CASE("No mutation of an answer throws, and what is taken is UTF-8", "[llm]") {
  const unsigned seed = 4711;
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const std::string good =
      R"({"model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"text \u00e4"}}],)"
      R"("usage":{"prompt_tokens":1,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":1}},"error":null})";
  int taken = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string body = good;
    for (unsigned n = 1 + random() % 4; n > 0; --n) {
      const size_t at = random() % body.size();
      switch (random() % 4) {
        case 0:
          body[at] = static_cast<char>(random() % 256);
          break;
        case 1:
          body.erase(at, 1 + random() % 8);
          break;
        case 2:
          body.insert(at, body.substr(random() % body.size(), random() % 20));
          break;
        case 3:
          body[at] = "{}[]\",:0n"[random() % 9];
          break;
      }
      if (body.empty()) body = "{";
    }
    Rejection rejection;
    absl::StatusOr<Completion> done = Parse(body, &rejection);
    if (done.ok()) {
      ++taken;
      REQUIRE(IsUtf8(done->text));
      REQUIRE(done->prompt_tokens >= 0);
      REQUIRE(done->completion_tokens >= 0);
    } else {
      REQUIRE(IsUtf8(done.status().message()));
      REQUIRE(rejection.status == done.status());
    }
  }
  CHECK(taken > 100);
}

TEST_CASE("An answer nested a million deep is refused and nothing overflows", "[llm]") {
  CHECK_FALSE(Parse(std::string(1'000'000, '[')).ok());
  std::string deep = R"({"choices":)" + std::string(300'000, '[') + std::string(300'000, ']') + "}";
  CHECK(Parse(deep).status().code() == absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace grove::llm
