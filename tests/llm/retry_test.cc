#include "coordinator/llm/retry.h"

#include <catch2/catch.hpp>
#include <string>

namespace grove::llm {
namespace {

TEST_CASE("Retry-After is understood as seconds and as a date in all three forms", "[llm]") {
  const absl::Time now = absl::FromUnixSeconds(1445412470);  // 2015-10-21 07:27:50 UTC
  CHECK(ParseRetryAfter("120", now) == absl::Seconds(120));
  CHECK(ParseRetryAfter(" 0.5 ", now) == absl::Milliseconds(500));
  CHECK(ParseRetryAfter("Wed, 21 Oct 2015 07:28:00 GMT", now) == absl::Seconds(10));
  CHECK(ParseRetryAfter("Wednesday, 21-Oct-15 07:28:00 GMT", now) == absl::Seconds(10));
  CHECK(ParseRetryAfter("Wed Oct 21 07:28:00 2015", now) == absl::Seconds(10));
  CHECK(ParseRetryAfter("Wed, 21 Oct 2015 07:00:00 GMT", now) == absl::ZeroDuration());
  CHECK(ParseRetryAfter("9999999999999999999999", now) == absl::Hours(365 * 24));
  for (const std::string nonsense : {"", "-5", "soon", "1e9", "nan", "inf", "1.2.3", "Wed, 99 Oct 2015 07:28:00 GMT"}) {
    CAPTURE(nonsense);
    CHECK(ParseRetryAfter(nonsense, now) == std::nullopt);
  }
}

TEST_CASE("Back-off doubles up to its cap and is spread over the whole interval", "[llm]") {
  const auto wait = [](int retry, double unit) { return Backoff(retry, absl::Seconds(1), absl::Seconds(60), unit); };
  CHECK(wait(0, 0.5) == absl::Milliseconds(500));
  CHECK(wait(3, 0.5) == absl::Seconds(4));
  CHECK(wait(6, 0.5) == absl::Seconds(30));
  CHECK(wait(1000, 0.5) == absl::Seconds(30));
  CHECK(wait(4, 0.0) == absl::ZeroDuration());
}

TEST_CASE("Only statuses that can pass are tried again", "[llm]") {
  for (int status : {408, 409, 425, 429, 500, 502, 503, 504, 529}) CHECK(IsRetryableHttpStatus(status));
  for (int status : {200, 301, 400, 401, 402, 403, 404, 413, 422, 600}) CHECK_FALSE(IsRetryableHttpStatus(status));
}

}  // namespace
}  // namespace grove::llm
