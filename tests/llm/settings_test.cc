#include "coordinator/llm/settings.h"

#include <catch2/catch.hpp>

namespace grove::llm {
namespace {

TEST_CASE("A base URL is https anywhere, and plain http only on loopback unless allowed", "[llm]") {
  CHECK(ValidateBaseUrl("https://api.openai.com/v1", false).ok());
  CHECK(ValidateBaseUrl("HTTPS://[2001:db8::1]:8443/v1/", false).ok());
  for (const char* url :
       {"http://127.0.0.1:8000/v1", "http://127.3.2.1/v1", "http://localhost:11434/v1", "http://[::1]:80/v1"}) {
    CAPTURE(url);
    CHECK(ValidateBaseUrl(url, false).ok());
    CHECK(IsLoopbackUrl(url));
  }
  for (const char* url : {"http://10.0.0.5/v1", "http://127.0.0.1.evil.example/v1", "http://127.evil.example.com/v1",
                          "http://localhost.example/v1"}) {
    CAPTURE(url);
    CHECK(ValidateBaseUrl(url, false).code() == absl::StatusCode::kInvalidArgument);
    CHECK(ValidateBaseUrl(url, true).ok());
    CHECK_FALSE(IsLoopbackUrl(url));
  }
}

TEST_CASE("A URL that would carry a secret or is none is refused with the reason", "[llm]") {
  const absl::Status password = ValidateBaseUrl("https://me:hunter2@example.com/v1", false);
  CHECK(password.code() == absl::StatusCode::kInvalidArgument);
  CHECK(password.message().find("hunter2") == absl::string_view::npos);
  const absl::Status query = ValidateBaseUrl("https://example.com/v1?key=hunter2", false);
  CHECK(query.code() == absl::StatusCode::kInvalidArgument);
  CHECK(query.message().find("hunter2") == absl::string_view::npos);
  for (const char* url : {"", "example.com/v1", "file:///etc/passwd", "ftp://example.com", "https://",
                          "https://host:0/v1", "https://host:99999/v1", "https://host:x/v1", "https://[::1/v1",
                          "https://[::1]x/v1", "https://host/v1\r\nX-Evil: 1", "https://ho st/v1"}) {
    CAPTURE(url);
    CHECK(ValidateBaseUrl(url, true).code() == absl::StatusCode::kInvalidArgument);
  }
}

TEST_CASE("Two spellings of one endpoint are the same, and nothing else is", "[llm]") {
  CHECK(SameEndpoint("https://api.openai.com/v1", "HTTPS://API.openai.com:443/v1/"));
  CHECK(SameEndpoint("http://127.0.0.1:80", "http://127.0.0.1/"));
  CHECK_FALSE(SameEndpoint("https://api.openai.com/v1", "http://api.openai.com/v1"));
  CHECK_FALSE(SameEndpoint("https://api.openai.com/v1", "https://api.openai.com:8443/v1"));
  CHECK_FALSE(SameEndpoint("https://api.openai.com/v1", "https://api.openai.com/v1/other"));
  CHECK_FALSE(SameEndpoint("https://api.openai.com/v1", "https://api.openai.com.evil.example/v1"));
  CHECK_FALSE(SameEndpoint("https://api.openai.com/v1", "https://x@api.openai.com/v1"));
  CHECK_FALSE(SameEndpoint("", ""));
}

TEST_CASE("The defaults are valid, and each senseless setting is named", "[llm]") {
  CHECK(Validate(Settings{}).ok());
  Settings settings;
  settings.stall_timeout = absl::ZeroDuration();
  CHECK(Validate(settings).message().find("stall_timeout") != absl::string_view::npos);
  settings = Settings{};
  settings.max_attempts = 0;
  CHECK(Validate(settings).message().find("max_attempts") != absl::string_view::npos);
  settings = Settings{};
  settings.base_url = "nowhere";
  CHECK_FALSE(Validate(settings).ok());
}

}  // namespace
}  // namespace grove::llm
