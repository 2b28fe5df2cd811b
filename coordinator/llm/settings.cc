#include "coordinator/llm/settings.h"

#include <stdlib.h>

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "coordinator/llm/text.h"

namespace grove::llm {
namespace {

struct Url {
  std::string scheme;
  std::string host;  // lower case; an IPv6 address without its brackets
  int port = 0;      // the scheme's default where none is given
  std::string path;  // without trailing slashes
};

absl::Status Bad(const std::string& url, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("base URL '", OneLine(url, 200), "': ", why));
}

absl::StatusOr<Url> Parse(const std::string& url) {
  if (url.empty()) return Bad(url, "is empty; give one such as https://api.openai.com/v1");
  if (url.size() > 2000) return Bad(url, "is longer than 2000 characters");
  for (char c : url) {
    if (c <= ' ' || c > '~' || c == '\\' || c == '"' || c == '<' || c == '>') {
      return Bad(url, "holds a blank or a character that does not belong in a URL; percent-encode it");
    }
  }
  absl::string_view rest = url;
  Url out;
  if (absl::StartsWithIgnoreCase(rest, "https://")) {
    out.scheme = "https";
    out.port = 443;
    rest.remove_prefix(8);
  } else if (absl::StartsWithIgnoreCase(rest, "http://")) {
    out.scheme = "http";
    out.port = 80;
    rest.remove_prefix(7);
  } else {
    return Bad(url, "must begin with https:// or http://");
  }
  // Before any of it is quoted back: what stands before the @ may be a password.
  if (absl::StrContains(rest, "@")) {
    return absl::InvalidArgumentError(
        "a base URL must not hold a user name or a password ('@'), because URLs are stored and "
        "shown; put the key into a file or an environment variable of the coordinator");
  }
  if (absl::StrContains(rest, "?") || absl::StrContains(rest, "#")) {
    return absl::InvalidArgumentError(
        "a base URL must not hold a query or a fragment ('?', '#'), because URLs are stored and "
        "shown; give scheme, host, port and path only");
  }
  const size_t slash = rest.find('/');
  absl::string_view authority = rest.substr(0, slash);
  absl::string_view path = slash == absl::string_view::npos ? "" : rest.substr(slash);
  while (absl::ConsumeSuffix(&path, "/")) {
  }
  out.path = std::string(path);
  absl::string_view port;
  bool has_port = false;
  if (absl::ConsumePrefix(&authority, "[")) {
    const size_t close = authority.find(']');
    if (close == absl::string_view::npos) return Bad(url, "has '[' without ']'");
    absl::string_view after = authority.substr(close + 1);
    authority = authority.substr(0, close);
    if (!after.empty()) {
      if (!absl::ConsumePrefix(&after, ":")) return Bad(url, "has text after ']'");
      port = after;
      has_port = true;
    }
  } else if (const size_t colon = authority.find(':'); colon != absl::string_view::npos) {
    port = authority.substr(colon + 1);
    authority = authority.substr(0, colon);
    has_port = true;
  }
  if (authority.empty()) return Bad(url, "names no host");
  if (has_port && (!absl::SimpleAtoi(port, &out.port) || out.port < 1 || out.port > 65535)) {
    return Bad(url, "has a port that is no number from 1 to 65535");
  }
  out.host = absl::AsciiStrToLower(authority);
  return out;
}

// 127.0.0.0/8, ::1 and the name localhost. An address is checked digit by digit: "127.evil.example" is none.
bool IsLoopback(absl::string_view host) {
  if (host == "localhost" || host == "::1") return true;
  if (!absl::StartsWith(host, "127.")) return false;
  int dots = 0;
  for (char c : host) {
    if (c == '.') {
      ++dots;
    } else if (!absl::ascii_isdigit(c)) {
      return false;
    }
  }
  return dots == 3;
}

absl::Status Positive(absl::Duration value, absl::string_view name) {
  if (value > absl::ZeroDuration()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("llm settings: ", name, " must be above zero"));
}

}  // namespace

Settings SettingsFromEnvironment() {
  Settings settings;
  const auto take = [](const char* name, std::string* to) {
    const char* value = getenv(name);
    if (value == nullptr || *value == '\0') return false;
    *to = value;
    return true;
  };
  if (!take("GROVE_LLM_BASE_URL", &settings.base_url)) take("OPENAI_BASE_URL", &settings.base_url);
  take("GROVE_LLM_MODEL", &settings.model);
  take("GROVE_LLM_KEY_FILE", &settings.api_key_file);
  return settings;
}

absl::Status ValidateBaseUrl(const std::string& url, bool allow_plain_http) {
  absl::StatusOr<Url> parsed = Parse(url);
  if (!parsed.ok()) return parsed.status();
  if (parsed->scheme == "http" && !allow_plain_http && !IsLoopback(parsed->host)) {
    return Bad(url,
               "plain http would send prompts and the key in the clear; use https://, or allow it on the coordinator "
               "(--llm-plain-http)");
  }
  return absl::OkStatus();
}

bool IsLoopbackUrl(const std::string& url) {
  absl::StatusOr<Url> parsed = Parse(url);
  return parsed.ok() && IsLoopback(parsed->host);
}

bool SameEndpoint(const std::string& a, const std::string& b) {
  absl::StatusOr<Url> left = Parse(a);
  absl::StatusOr<Url> right = Parse(b);
  return left.ok() && right.ok() && left->scheme == right->scheme && left->host == right->host &&
         left->port == right->port && left->path == right->path;
}

absl::Status Validate(const Settings& settings) {
  if (absl::Status url = ValidateBaseUrl(settings.base_url, settings.allow_plain_http); !url.ok()) return url;
  for (const auto& [value, name] :
       {std::pair{settings.connect_timeout, "connect_timeout"},
        std::pair{settings.first_byte_timeout, "first_byte_timeout"},
        std::pair{settings.stall_timeout, "stall_timeout"}, std::pair{settings.attempt_timeout, "attempt_timeout"},
        std::pair{settings.total_deadline, "total_deadline"}, std::pair{settings.backoff_initial, "backoff_initial"},
        std::pair{settings.backoff_max, "backoff_max"}}) {
    if (absl::Status status = Positive(value, name); !status.ok()) return status;
  }
  if (settings.max_attempts < 1 || settings.max_attempts > 100) {
    return absl::InvalidArgumentError("llm settings: max_attempts must be from 1 to 100");
  }
  if (settings.max_output_tokens < 0) {
    return absl::InvalidArgumentError("llm settings: max_output_tokens must not be negative");
  }
  if (settings.max_response_bytes < 1024 || settings.max_response_bytes > (64 << 20)) {
    return absl::InvalidArgumentError("llm settings: max_response_bytes must be from 1 KiB to 64 MiB");
  }
  return absl::OkStatus();
}

}  // namespace grove::llm
