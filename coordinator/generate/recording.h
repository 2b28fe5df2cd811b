// A recording: one JSON object per line, one line per call of a model.
//
//   {"grove_recording":1,"kind":"ideas"|"kernel","request":KEY,"prompt_sha256":HEX,"model":TEXT,"prompt_tokens":N,
//    "completion_tokens":N,"seconds":X,"messages":[{"role","content"}...],"answer":TEXT}
//
// Lines that a search stored one by one are a recording when put after one another. "messages" may be left out, which
// makes a recording about ten times smaller; a replay needs "kind", "request" and "answer" only.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coordinator/llm/model_client.h"

namespace grove::generate {

inline constexpr size_t kMaxRecordingBytes = 16 << 20;  // tree.proto, GeneratorSpec.recording
inline constexpr size_t kMaxExchanges = 100'000;

struct Exchange {
  std::string kind;     // "ideas" or "kernel"
  std::string request;  // the policy's key
  std::string prompt_sha256;
  std::string model;
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
  double seconds = 0;
  std::vector<llm::Message> messages;
  std::string answer;
};

// One line without the line end.
std::string ExchangeLine(const Exchange& exchange);

// SHA-256 over roles and contents.
std::string PromptSha256(const std::vector<llm::Message>& messages);

// The exchanges in order; blank lines are skipped. INVALID_ARGUMENT names the line and what is wrong with it. Messages
// are not kept.
absl::StatusOr<std::vector<Exchange>> ParseRecording(absl::string_view text);

}  // namespace grove::generate
