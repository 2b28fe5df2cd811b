// The JSON of POST /chat/completions (https://platform.openai.com/docs/api-reference/chat), as OpenAI, vLLM, llama.cpp,
// Ollama, OpenRouter, DeepSeek and others speak it. What comes back is untrusted.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coordinator/llm/http_transport.h"
#include "coordinator/llm/model_client.h"

namespace grove::llm {

// The request's body. `tokens_field` is the name under which the server knows the limit of the answer's length:
// "max_tokens", or "max_completion_tokens" as OpenAI's reasoning models insist. Text that is not UTF-8 is repaired.
std::string ChatRequestBody(const std::vector<Message>& messages, const CompletionParams& params,
                            absl::string_view tokens_field);

// How an answer with an HTTP status other than 2xx (or with an error object in a 2xx) is to be taken.
struct Rejection {
  absl::Status status;
  bool retry = false;
};

// The completion in a 2xx answer, without attempts and seconds. Absent or senseless token counts are estimated from
// `prompt_bytes` and the answer. On failure `rejection` says whether to try again.
absl::StatusOr<Completion> ParseChatResponse(const HttpResponse& response, const CompletionParams& params,
                                             size_t prompt_bytes, Rejection* rejection);

// For an answer whose status is not 2xx. `host` is for the message.
Rejection ClassifyHttpError(const HttpResponse& response, absl::string_view host);

}  // namespace grove::llm
