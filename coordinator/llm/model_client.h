// A conversation with a language model, one answer at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace grove::llm {

struct Message {
  std::string role;     // "system", "user", "assistant"
  std::string content;  // UTF-8
};

struct CompletionParams {
  std::string model;
  double temperature = 0;         // 0 = the model's default
  int32_t max_output_tokens = 0;  // 0 = the model's own limit
};

struct Completion {
  std::string text;        // UTF-8; may hold anything
  std::string model;       // as the server names it, else as asked
  bool truncated = false;  // ended at the token limit
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
  int64_t cached_prompt_tokens = 0;  // of prompt_tokens; 0 also when the server does not say
  bool usage_estimated = false;      // the server gave no counts: bytes divided by four
  int attempts = 0;                  // HTTP requests made
  double seconds = 0;                // with retries and waits
};

// Thread-safe; calls block.
class ModelClient {
 public:
  virtual ~ModelClient() = default;
  // Errors, each with its cause and the remedy:
  //   UNAVAILABLE, RESOURCE_EXHAUSTED  an outage or a limit that was not over within the deadline: pause, then ask
  //   again UNAUTHENTICATED                  the key is missing or refused: every call will fail until someone acts
  //   INVALID_ARGUMENT                 the request will never be accepted (model, URL, length of the prompt)
  //   DATA_LOSS                        the answer makes no sense; another call may do better
  //   CANCELLED                        Cancel was called
  virtual absl::StatusOr<Completion> Complete(const std::vector<Message>& messages, const CompletionParams& params) = 0;
  // Ends calls in flight and makes later ones fail. From any thread.
  virtual void Cancel() = 0;
};

}  // namespace grove::llm
