#include "coordinator/llm/openai_wire.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coordinator/llm/retry.h"
#include "coordinator/llm/text.h"

namespace grove::llm {
namespace {

using nlohmann::json;

constexpr size_t kMaxErrorText = 300;
// No model answers or reads a billion tokens in one call; a larger count is nonsense and would spoil a budget.
constexpr int64_t kMaxTokens = 1'000'000'000;

// Null instead of an exception for anything that is no JSON.
json Parsed(const std::string& text) {
  if (!JsonNestingWithin(text, kMaxJsonNesting)) return json();
  json value = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) return json();
  return value;
}

const json* Member(const json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

std::string Text(const json* value) {
  if (value == nullptr) return "";
  if (value->is_string()) return value->get_ref<const std::string&>();
  if (value->is_number_integer()) return std::to_string(value->get<int64_t>());
  return "";
}

struct ErrorInfo {
  std::string message;  // one line, bounded
  std::string code;     // "insufficient_quota", "context_length_exceeded", "429", ...
  std::string type;
};

// {"error":{"message","type","code"}}, {"error":"text"}, {"message":"text"}, {"detail":"text"}, or the body's
// beginning.
ErrorInfo DescribeError(const json& body, const std::string& raw) {
  ErrorInfo info;
  if (const json* error = Member(body, "error"); error != nullptr) {
    if (error->is_string()) {
      info.message = Text(error);
    } else {
      info.message = Text(Member(*error, "message"));
      info.code = OneLine(Text(Member(*error, "code")), 60);
      info.type = OneLine(Text(Member(*error, "type")), 60);
    }
  }
  if (info.message.empty()) info.message = Text(Member(body, "message"));
  if (info.message.empty()) info.message = Text(Member(body, "detail"));
  if (info.message.empty()) info.message = raw.substr(0, 4 * kMaxErrorText);
  info.message = OneLine(info.message, kMaxErrorText);
  if (info.message.empty()) info.message = "no explanation given";
  return info;
}

Rejection Classify(int status, const ErrorInfo& error, absl::string_view location, absl::string_view host) {
  const std::string said = absl::StrCat(host, " answered HTTP ", status, ": ", error.message);
  if (status >= 300 && status < 400) {
    return {absl::InvalidArgumentError(absl::StrCat(host, " redirects (HTTP ", status, ") to '", location,
                                                    "'; redirects are not followed, because they would carry the "
                                                    "prompt elsewhere: set the base URL to the final one")),
            false};
  }
  if (status == 401) {
    // Without the server's words: some quote parts of the key.
    return {absl::UnauthenticatedError(absl::StrCat(
                host,
                " refused the API key (HTTP 401); put a valid key into the coordinator's key file or environment "
                "variable (docs/generators.md), then resume the search")),
            false};
  }
  if (status == 403) {
    return {absl::UnauthenticatedError(
                absl::StrCat(said, "; the key has no right to this model or this place; use another key or model")),
            false};
  }
  // Out of money: waiting some seconds does not help, so the search pauses until someone acts.
  if (status == 402 || error.code == "insufficient_quota" || error.type == "insufficient_quota") {
    return {absl::ResourceExhaustedError(absl::StrCat(
                said, "; the account is out of credit or over its budget: top it up, then resume the search")),
            false};
  }
  if (status == 429) return {absl::ResourceExhaustedError(said), true};
  if (IsRetryableHttpStatus(status)) return {absl::UnavailableError(said), true};
  if (status == 404) {
    return {absl::InvalidArgumentError(absl::StrCat(
                said,
                "; check the model's name and that the base URL ends where /chat/completions follows (often in /v1)")),
            false};
  }
  if (error.code == "context_length_exceeded" || status == 413) {
    return {absl::InvalidArgumentError(
                absl::StrCat(said, "; the prompt is too long for this model, use one with a larger context")),
            false};
  }
  if (status >= 400 && status < 500) {
    return {absl::InvalidArgumentError(absl::StrCat(said, "; check model, temperature and base URL")), false};
  }
  return {absl::DataLossError(absl::StrCat(said, "; this is no status that a chat endpoint gives")), false};
}

// content is a string, or a list of parts of which those of type "text" count.
std::string ContentText(const json* content) {
  if (content == nullptr) return "";
  if (content->is_string()) return content->get_ref<const std::string&>();
  std::string out;
  if (content->is_array()) {
    for (const json& part : *content) {
      if (Text(Member(part, "type")) == "text") out += Text(Member(part, "text"));
    }
  }
  return out;
}

std::optional<int64_t> Tokens(const json* usage, const char* key) {
  if (usage == nullptr) return std::nullopt;
  const json* value = Member(*usage, key);
  if (value == nullptr || !value->is_number_integer()) return std::nullopt;
  if (value->is_number_unsigned() && value->get<uint64_t>() > static_cast<uint64_t>(kMaxTokens)) return std::nullopt;
  const int64_t count = value->get<int64_t>();
  if (count < 0 || count > kMaxTokens) return std::nullopt;
  return count;
}

// Four bytes of English or code are about one token in current tokenizers (OpenAI's own rule of thumb).
int64_t EstimatedTokens(size_t bytes) { return static_cast<int64_t>((bytes + 3) / 4); }

}  // namespace

std::string ChatRequestBody(const std::vector<Message>& messages, const CompletionParams& params,
                            absl::string_view tokens_field) {
  json list = json::array();
  for (const Message& message : messages) list.push_back({{"role", message.role}, {"content", message.content}});
  json body = {{"model", params.model}, {"messages", std::move(list)}, {"stream", false}};
  if (params.temperature > 0) body["temperature"] = params.temperature;
  if (params.max_output_tokens > 0) body[std::string(tokens_field)] = params.max_output_tokens;
  return body.dump(-1, ' ', false, json::error_handler_t::replace);
}

absl::StatusOr<Completion> ParseChatResponse(const HttpResponse& response, const CompletionParams& params,
                                             size_t prompt_bytes, Rejection* rejection) {
  // `again`: the same request may well be answered the next time.
  const auto nonsense = [&](absl::string_view what, bool again = false) {
    *rejection = {absl::DataLossError(what), again};
    return rejection->status;
  };
  const json body = Parsed(response.body);
  if (!body.is_object()) {
    return nonsense(absl::StrCat("the server's answer is no JSON object (content type '",
                                 response.content_type.empty() ? "none" : response.content_type, "', ",
                                 response.body.size(), " bytes, beginning with '", OneLine(response.body, 120),
                                 "'); check that the base URL is that of an OpenAI-compatible API"));
  }
  const json* choices = Member(body, "choices");
  // Gateways report their upstream's failure with status 200 and an error object.
  if (const json* error = Member(body, "error"); error != nullptr && !error->is_null() && choices == nullptr) {
    const ErrorInfo info = DescribeError(body, "");
    int status = 500;
    if (const json* code = Member(*error, "code"); code != nullptr && code->is_number_integer()) {
      status = static_cast<int>(std::clamp<int64_t>(code->get<int64_t>(), 0, 999));
    }
    *rejection = Classify(status, info, "", "the server (inside a 200)");
    return rejection->status;
  }
  if (choices == nullptr || !choices->is_array() || choices->empty()) {
    return nonsense("the server's answer has no choices", true);
  }
  const json* message = Member(choices->front(), "message");
  if (message == nullptr || !message->is_object())
    return nonsense("the server's answer has a choice without a message", true);

  Completion out;
  out.text = ContentText(Member(*message, "content"));
  const std::string finish = Text(Member(choices->front(), "finish_reason"));
  out.truncated = finish == "length";
  if (out.text.empty()) {
    if (const std::string refusal = Text(Member(*message, "refusal")); !refusal.empty()) {
      return nonsense(absl::StrCat("the model refused: ", OneLine(refusal, kMaxErrorText)));
    }
    if (out.truncated) {
      return nonsense("the model reached its token limit before it wrote anything; raise --llm-max-output-tokens");
    }
    return nonsense(absl::StrCat("the model's answer is empty (finish_reason '", OneLine(finish, 40), "')"), true);
  }
  out.model = OneLine(Text(Member(body, "model")), 200);
  if (out.model.empty()) out.model = params.model;

  const json* usage = Member(body, "usage");
  const std::optional<int64_t> prompt = Tokens(usage, "prompt_tokens");
  const std::optional<int64_t> completion = Tokens(usage, "completion_tokens");
  out.prompt_tokens = prompt.value_or(EstimatedTokens(prompt_bytes));
  out.completion_tokens = completion.value_or(EstimatedTokens(out.text.size()));
  out.usage_estimated = !prompt || !completion;
  if (usage != nullptr) {
    out.cached_prompt_tokens =
        std::min(out.prompt_tokens, Tokens(Member(*usage, "prompt_tokens_details"), "cached_tokens").value_or(0));
  }
  return out;
}

Rejection ClassifyHttpError(const HttpResponse& response, absl::string_view host) {
  return Classify(response.status, DescribeError(Parsed(response.body), response.body), response.location, host);
}

}  // namespace grove::llm
