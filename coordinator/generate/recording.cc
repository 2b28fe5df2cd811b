#include "coordinator/generate/recording.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "coordinator/llm/text.h"

namespace grove::generate {
namespace {

using nlohmann::json;

std::string Text(const json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_string() ? found->get<std::string>() : std::string();
}

int64_t Count(const json& line, const char* key) {
  const auto found = line.find(key);
  if (found == line.end() || !found->is_number_integer()) return 0;
  return std::max<int64_t>(0, found->get<int64_t>());
}

}  // namespace

std::string ExchangeLine(const Exchange& exchange) {
  json messages = json::array();
  for (const llm::Message& message : exchange.messages) {
    messages.push_back({{"role", message.role}, {"content", message.content}});
  }
  const json line = {{"grove_recording", 1},
                     {"kind", exchange.kind},
                     {"request", exchange.request},
                     {"prompt_sha256", exchange.prompt_sha256},
                     {"model", exchange.model},
                     {"prompt_tokens", exchange.prompt_tokens},
                     {"completion_tokens", exchange.completion_tokens},
                     {"seconds", exchange.seconds},
                     {"messages", std::move(messages)},
                     {"answer", exchange.answer}};
  return line.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string PromptSha256(const std::vector<llm::Message>& messages) {
  std::string all;
  for (const llm::Message& message : messages) {
    absl::StrAppend(&all, message.role.size(), ":", message.role, message.content.size(), ":", message.content);
  }
  return Sha256Hex(all);
}

absl::StatusOr<std::vector<Exchange>> ParseRecording(absl::string_view text) {
  if (text.size() > kMaxRecordingBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the recording has ", text.size(), " bytes, above the limit of ",
                                                   kMaxRecordingBytes, "; leave out the \"messages\" of its lines"));
  }
  std::vector<Exchange> out;
  int number = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const absl::string_view line = absl::StripAsciiWhitespace(text.substr(0, end));
    text = end == absl::string_view::npos ? "" : text.substr(end + 1);
    ++number;
    if (line.empty()) continue;
    const auto bad = [&](absl::string_view why) {
      return absl::InvalidArgumentError(absl::StrCat("line ", number, " of the recording ", why,
                                                     "; a recording has one JSON object per line, as grove writes it"));
    };
    if (!llm::JsonNestingWithin(line, llm::kMaxJsonNesting)) return bad("is nested too deeply");
    const json value = json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
    if (value.is_discarded() || !value.is_object()) return bad("is no JSON object");
    const auto version = value.find("grove_recording");
    if (version == value.end() || !version->is_number_integer()) return bad("lacks \"grove_recording\"");
    if (version->get<int64_t>() != 1) {
      return bad(absl::StrCat("has version ", version->get<int64_t>(), ", this grove reads version 1"));
    }
    Exchange exchange;
    exchange.kind = Text(value, "kind");
    if (exchange.kind != "ideas" && exchange.kind != "kernel")
      return bad("has a \"kind\" that is neither \"ideas\" nor \"kernel\"");
    const auto answer = value.find("answer");
    if (answer == value.end() || !answer->is_string()) return bad("lacks the text \"answer\"");
    exchange.answer = answer->get<std::string>();
    exchange.request = Text(value, "request");
    exchange.prompt_sha256 = Text(value, "prompt_sha256");
    exchange.model = llm::OneLine(Text(value, "model"), 200);
    exchange.prompt_tokens = Count(value, "prompt_tokens");
    exchange.completion_tokens = Count(value, "completion_tokens");
    if (out.size() >= kMaxExchanges) return bad(absl::StrCat("is more than the ", kMaxExchanges, "th exchange"));
    out.push_back(std::move(exchange));
  }
  if (out.empty()) return absl::InvalidArgumentError("the recording is empty: it has no line with an exchange");
  return out;
}

}  // namespace grove::generate
