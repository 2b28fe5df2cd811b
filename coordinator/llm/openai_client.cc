#include "coordinator/llm/openai_client.h"

#include <algorithm>
#include <optional>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/base/log.h"
#include "coordinator/llm/curl_transport.h"
#include "coordinator/llm/openai_wire.h"
#include "coordinator/llm/retry.h"
#include "coordinator/llm/text.h"

namespace grove::llm {
namespace {

std::string HostOf(const std::string& url) {
  const size_t begin = url.find("://") == std::string::npos ? 0 : url.find("://") + 3;
  return OneLine(url.substr(begin, url.find('/', begin) - begin), 200);
}

std::string WithoutTrailingSlashes(std::string url) {
  while (!url.empty() && url.back() == '/') url.pop_back();
  return url;
}

// OpenAI's reasoning models refuse max_tokens; servers that imitate the API often know nothing else.
absl::string_view TokensField(const std::string& host) {
  return host == "api.openai.com" || absl::StartsWith(host, "api.openai.com:") ? "max_completion_tokens" : "max_tokens";
}

// "retry-after-ms" is what OpenAI and Azure send beside Retry-After; it is the finer of the two.
std::optional<absl::Duration> AskedWait(const HttpResponse& response, absl::Time now) {
  double millis = 0;
  if (absl::SimpleAtod(response.retry_after_ms, &millis) && millis >= 0 && millis < 1e10)
    return absl::Milliseconds(millis);
  return ParseRetryAfter(response.retry_after, now);
}

absl::Status Appended(const absl::Status& status, absl::string_view text) {
  return absl::Status(status.code(), absl::StrCat(status.message(), text));
}

}  // namespace

OpenAiDeps SystemDeps() {
  OpenAiDeps deps;
  deps.transport = std::make_shared<CurlTransport>();
  deps.sleeper = std::make_shared<SystemSleeper>();
  deps.clock = &SystemClock::Get();
  deps.random = [] {
    thread_local std::mt19937_64 engine(RandomSeed());
    return std::uniform_real_distribution<double>(0.0, 1.0)(engine);
  };
  return deps;
}

OpenAiClient::OpenAiClient(Settings settings, std::string base_url, OpenAiDeps deps)
    : settings_(std::move(settings)),
      base_url_(WithoutTrailingSlashes(std::move(base_url))),
      deps_(std::move(deps)),
      host_(HostOf(base_url_)),
      own_endpoint_(SameEndpoint(base_url_, settings_.base_url) || SameEndpoint(base_url_, settings_.key_url)),
      loopback_(IsLoopbackUrl(base_url_)) {}

absl::StatusOr<Secret> OpenAiClient::KeyForThisEndpoint() const {
  if (!own_endpoint_) return Secret();
  absl::StatusOr<Secret> key = ReadApiKey(settings_);
  if (!key.ok() || !key->empty() || loopback_) return key;
  return absl::UnauthenticatedError(
      absl::StrCat("no API key for ", host_, ": ",
                   settings_.api_key_env.empty()
                       ? ""
                       : absl::StrCat("set ", settings_.api_key_env, " in the coordinator's environment, or "),
                   "name a key file with --llm-api-key-file"));
}

absl::StatusOr<Completion> OpenAiClient::Complete(const std::vector<Message>& messages,
                                                  const CompletionParams& params) {
  const absl::Duration start = deps_.clock->Monotonic();
  const std::string body = ChatRequestBody(messages, params, TokensField(host_));
  absl::Status last;
  for (int attempt = 1;; ++attempt) {
    if (cancel_.cancelled()) return absl::CancelledError("the model call was cancelled");
    absl::StatusOr<Secret> key = KeyForThisEndpoint();
    if (!key.ok()) return key.status();

    HttpRequest request;
    request.url = base_url_ + "/chat/completions";
    request.body = body;
    request.bearer = &*key;
    request.direct = loopback_;
    request.connect_timeout = settings_.connect_timeout;
    request.first_byte_timeout = settings_.first_byte_timeout;
    request.stall_timeout = settings_.stall_timeout;
    request.max_response_bytes = settings_.max_response_bytes;
    request.total_timeout =
        std::min(settings_.attempt_timeout, start + settings_.total_deadline - deps_.clock->Monotonic());

    Rejection rejection;
    std::optional<absl::Duration> asked;
    absl::StatusOr<HttpResponse> response = deps_.transport->Post(request, cancel_);
    if (!response.ok()) {
      rejection = {response.status(), absl::IsUnavailable(response.status())};
    } else if (response->status >= 200 && response->status < 300) {
      absl::StatusOr<Completion> completion = ParseChatResponse(*response, params, body.size(), &rejection);
      if (completion.ok()) {
        completion->text = Redact(completion->text, *key);
        completion->model = Redact(completion->model, *key);
        completion->attempts = attempt;
        completion->seconds = absl::ToDoubleSeconds(deps_.clock->Monotonic() - start);
        return completion;
      }
      asked = AskedWait(*response, deps_.clock->Now());
    } else {
      rejection = ClassifyHttpError(*response, host_);
      asked = AskedWait(*response, deps_.clock->Now());
    }
    last = absl::Status(rejection.status.code(), Redact(rejection.status.message(), *key));
    if (!rejection.retry) return last;

    const std::string tries = absl::StrCat(" (", attempt, attempt == 1 ? " attempt)" : " attempts)");
    if (attempt >= settings_.max_attempts) return Appended(last, tries);
    const double unit = deps_.random();
    // With Retry-After everyone who was turned away comes back at the same moment; the jitter spreads them.
    const absl::Duration wait = asked ? *asked + unit * settings_.backoff_initial
                                      : Backoff(attempt - 1, settings_.backoff_initial, settings_.backoff_max, unit);
    const absl::Duration left = start + settings_.total_deadline - deps_.clock->Monotonic();
    if (wait >= left) {
      return Appended(last, asked ? absl::StrCat(tries, "; it asks to wait ", absl::FormatDuration(*asked),
                                                 ", longer than the call may still take")
                                  : absl::StrCat(tries, "; the deadline of ",
                                                 absl::FormatDuration(settings_.total_deadline), " is reached"));
    }
    LogDebug("llm", last.message(), "; trying again in ", absl::FormatDuration(wait));
    if (!deps_.sleeper->Sleep(wait, cancel_)) return absl::CancelledError("the model call was cancelled");
  }
}

}  // namespace grove::llm
