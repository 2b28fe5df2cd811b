// ModelClient for any OpenAI-compatible endpoint, with the one retry layer.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "coordinator/llm/cancel.h"
#include "coordinator/llm/http_transport.h"
#include "coordinator/llm/model_client.h"
#include "coordinator/llm/settings.h"

namespace grove::llm {

// What the client stands on, so that tests neither sleep nor guess.
struct OpenAiDeps {
  std::shared_ptr<HttpTransport> transport;
  std::shared_ptr<Sleeper> sleeper;
  Clock* clock = nullptr;          // outlives the client
  std::function<double()> random;  // uniform in [0, 1), called from several threads
};

// libcurl, the system's clock, and random numbers.
OpenAiDeps SystemDeps();

// Thread-safe.
//
// Retries (docs/generators.md): only lost or silent connections and HTTP 408, 409, 425, 429 and 5xx; waits what
// Retry-After asks plus jitter, else exponential back-off with full jitter; never longer than settings.total_deadline
// altogether. An attempt that is given up may still be billed by the provider; nothing can be done about that from
// here.
class OpenAiClient : public ModelClient {
 public:
  // `settings` are valid and `base_url` passed ValidateBaseUrl. The key is sent only when base_url and
  // settings.base_url are the same endpoint.
  OpenAiClient(Settings settings, std::string base_url, OpenAiDeps deps);

  absl::StatusOr<Completion> Complete(const std::vector<Message>& messages, const CompletionParams& params) override;
  void Cancel() override { cancel_.Cancel(); }

 private:
  absl::StatusOr<Secret> KeyForThisEndpoint() const;

  const Settings settings_;
  const std::string base_url_;
  const OpenAiDeps deps_;
  const std::string host_;  // for messages
  const bool own_endpoint_;
  const bool loopback_;
  CancelToken cancel_;
};

}  // namespace grove::llm
