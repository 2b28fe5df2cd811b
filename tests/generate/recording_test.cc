#include "coordinator/generate/recording.h"

#include <catch2/catch.hpp>

#include "coordinator/generate/replay.h"
#include "tests/generate/fixtures.h"

namespace grove::generate {
namespace {

Exchange Recorded(const std::string& kind, const std::string& request, const std::string& answer) {
  Exchange exchange;
  exchange.kind = kind;
  exchange.request = request;
  exchange.answer = answer;
  exchange.model = "m";
  exchange.messages = {{"user", "hello"}};
  return exchange;
}

std::string Code(int n) { return "```cpp\nGROVE_KERNEL(a) { return " + std::to_string(n) + "; }\n```\n"; }

std::string Source(ReplayGenerator& replay, const std::string& request) {
  KernelRequest kernel;
  kernel.request = request;
  absl::StatusOr<KernelAnswer> answer = replay.WriteKernel(SmallContext(), kernel);
  return answer.ok() ? answer->kernel.candidate().source() : std::string(answer.status().message());
}

TEST_CASE("An exchange survives its line", "[generate]") {
  Exchange exchange = Recorded("kernel", "j/i1/v0", "text \"quoted\"\n\xF0\x9F\x8C\xB3");
  exchange.prompt_tokens = 12;
  exchange.completion_tokens = 34;
  const std::string line = ExchangeLine(exchange);
  CHECK(line.find('\n') == std::string::npos);
  absl::StatusOr<std::vector<Exchange>> read = ParseRecording(line + "\n\n" + line);
  REQUIRE(read.ok());
  REQUIRE(read->size() == 2);
  CHECK((*read)[0].answer == exchange.answer);
  CHECK((*read)[0].request == exchange.request);
  CHECK((*read)[0].prompt_tokens == 12);
  CHECK((*read)[1].completion_tokens == 34);
}

TEST_CASE("A text that is no recording is refused by line and cause", "[generate]") {
  const auto why = [](const std::string& text) {
    absl::StatusOr<std::vector<Exchange>> read = ParseRecording(text);
    REQUIRE_FALSE(read.ok());
    CHECK(read.status().code() == absl::StatusCode::kInvalidArgument);
    return std::string(read.status().message());
  };
  const std::string good = ExchangeLine(Recorded("ideas", "r", "a"));
  CHECK(why("").find("empty") != std::string::npos);
  CHECK(why(good + "\nnonsense").find("line 2") != std::string::npos);
  CHECK(why("{}").find("grove_recording") != std::string::npos);
  CHECK(why(R"({"grove_recording":2,"kind":"ideas","answer":""})").find("version 2") != std::string::npos);
  CHECK(why(R"({"grove_recording":1,"kind":"poem","answer":""})").find("kind") != std::string::npos);
  CHECK(why(R"({"grove_recording":1,"kind":"ideas"})").find("answer") != std::string::npos);
  CHECK(why(std::string(100'000, '[')).find("nested") != std::string::npos);
  CHECK(why(std::string(kMaxRecordingBytes + 1, ' ')).find("messages") != std::string::npos);
}

TEST_CASE("A replay answers by key, then by order of the kind, then says that it has run out", "[generate]") {
  std::string text;
  for (int i = 0; i < 3; ++i) text += ExchangeLine(Recorded("kernel", "key" + std::to_string(i), Code(i))) + "\n";
  text += ExchangeLine(Recorded("ideas", "ideas0", kIdeasAnswer)) + "\n";
  absl::StatusOr<std::unique_ptr<ReplayGenerator>> replay = ReplayGenerator::Create(text);
  REQUIRE(replay.ok());
  CHECK(Source(**replay, "key1").find("return 1") != std::string::npos);
  CHECK(Source(**replay, "unknown-a").find("return 0") != std::string::npos);
  CHECK(Source(**replay, "unknown-b").find("return 2") != std::string::npos);  // 1 is used already
  CHECK(Source(**replay, "unknown-a").find("return 0") != std::string::npos);  // the same again
  CHECK(Source(**replay, "key0").find("return 0") != std::string::npos);
  KernelRequest more;
  more.request = "unknown-c";
  const absl::Status status = (*replay)->WriteKernel(SmallContext(), more).status();
  CHECK(status.code() == absl::StatusCode::kNotFound);
  CHECK(status.message().find("unknown-c") != absl::string_view::npos);
  CHECK(status.message().find("3 answers") != absl::string_view::npos);
  IdeaRequest ideas;
  ideas.request = "ideas0";
  ideas.count = 1;
  absl::StatusOr<IdeasAnswer> answer = (*replay)->ProposeIdeas(SmallContext(), ideas);
  REQUIRE(answer.ok());
  CHECK(answer->ideas.size() == 1);
  CHECK(answer->usage.calls == 0);
  CHECK(answer->usage.exchange.empty());
}

TEST_CASE("A key that was asked twice is answered as the search went on with it", "[generate]") {
  absl::StatusOr<std::unique_ptr<ReplayGenerator>> replay = ReplayGenerator::Create(
      ExchangeLine(Recorded("kernel", "k", Code(1))) + "\n" + ExchangeLine(Recorded("kernel", "k", Code(2))));
  REQUIRE(replay.ok());
  CHECK(Source(**replay, "k").find("return 2") != std::string::npos);
}

}  // namespace
}  // namespace grove::generate
