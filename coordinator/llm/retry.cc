#include "coordinator/llm/retry.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"

namespace grove::llm {

std::optional<absl::Duration> ParseRetryAfter(absl::string_view value, absl::Time now) {
  value = absl::StripAsciiWhitespace(value);
  if (value.empty() || value.size() > 64) return std::nullopt;
  if (std::all_of(value.begin(), value.end(), [](char c) { return absl::ascii_isdigit(c) || c == '.'; })) {
    double seconds = 0;
    if (!absl::SimpleAtod(value, &seconds) || !std::isfinite(seconds)) return std::nullopt;
    // A year: more makes no difference to anyone and must not overflow.
    return absl::Seconds(std::min(seconds, 365.0 * 86400));
  }
  for (const char* format : {"%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"}) {
    absl::Time time;
    std::string error;
    if (absl::ParseTime(format, value, absl::UTCTimeZone(), &time, &error)) {
      return std::max(time - now, absl::ZeroDuration());
    }
  }
  return std::nullopt;
}

absl::Duration Backoff(int retry, absl::Duration initial, absl::Duration max, double unit) {
  const double factor = std::ldexp(1.0, std::clamp(retry, 0, 60));
  return unit * std::min(max, initial * factor);
}

bool IsRetryableHttpStatus(int status) {
  return status == 408 || status == 409 || status == 425 || status == 429 || (status >= 500 && status < 600);
}

}  // namespace grove::llm
