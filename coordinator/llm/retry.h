// When to try again. One layer, in OpenAiClient; nothing below or above it retries.
#pragma once

#include <optional>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace grove::llm {

// The value of a Retry-After header (RFC 9110, 10.2.3): seconds (also with decimals, as some providers send) or an HTTP
// date in any of its three forms, as a time from now, not negative. Nothing for anything else.
std::optional<absl::Duration> ParseRetryAfter(absl::string_view value, absl::Time now);

// Full jitter (Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog 2015): unit * min(max, initial *
// 2^retry), with `unit` uniform in [0, 1) and `retry` from 0.
absl::Duration Backoff(int retry, absl::Duration initial, absl::Duration max, double unit);

// 408 request timeout, 409 conflict (a provider's lock), 425 too early, 429 too many requests, and every 5xx.
bool IsRetryableHttpStatus(int status);

}  // namespace grove::llm
