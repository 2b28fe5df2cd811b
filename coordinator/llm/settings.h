// How the coordinator reaches a language model: what an operator sets by flags or environment, once per process.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace grove::llm {

struct Settings {
  // Where the key may go: the endpoint's root, to which "/chat/completions" is appended. A job may name another URL; it
  // is then called without any key.
  std::string base_url = "https://api.openai.com/v1";
  // A second endpoint that the key may go to, when a job names it: a coordinator that is started for one user's command
  // trusts the URL of that command. Empty = none; what is no URL matches none.
  std::string key_url;
  std::string model;  // for jobs that name none; empty = every job must

  // The key: the first line of this file, or, with no file, this environment variable. Read anew for every call, so
  // that a rotated key is picked up and no copy is kept; never logged, stored or sent anywhere but to base_url
  // and key_url.
  std::string api_key_file;
  std::string api_key_env = "OPENAI_API_KEY";

  // Whether a job may name a base URL of its own. Off on a coordinator that is shared with people who must not be able
  // to make it call addresses of the network it stands in.
  bool allow_job_base_url = true;
  // Plain http:// to hosts other than loopback. Keys and prompts then cross the network in the clear.
  bool allow_plain_http = false;

  int32_t max_output_tokens = 0;  // 0 = the model's own limit

  // 15 s: a TCP and TLS handshake takes under a second; SYN is retransmitted after 1, 3, 7 and 15 s.
  absl::Duration connect_timeout = absl::Seconds(15);
  // Silence before the first byte of the body. 10 minutes: reasoning models answer after 36 to 400 s and send nothing
  // before.
  absl::Duration first_byte_timeout = absl::Minutes(10);
  // Silence in the middle of a body. Servers that keep a waiting connection open send blank lines every few seconds.
  absl::Duration stall_timeout = absl::Seconds(60);
  // One attempt, whatever it does.
  absl::Duration attempt_timeout = absl::Minutes(15);
  // One call with all its attempts and the waits between them; after it the search pauses instead.
  absl::Duration total_deadline = absl::Minutes(30);

  int max_attempts = 5;
  // Full jitter: attempt n waits a uniform time in [0, min(backoff_max, backoff_initial * 2^n)].
  absl::Duration backoff_initial = absl::Seconds(1);
  absl::Duration backoff_max = absl::Seconds(60);

  // 8 MiB: a kernel is at most 1 MiB, and JSON escapes can double it.
  int64_t max_response_bytes = 8 << 20;
};

// The defaults, with GROVE_LLM_BASE_URL (else OPENAI_BASE_URL), GROVE_LLM_MODEL and GROVE_LLM_KEY_FILE from the
// environment where they are set. Reads no key.
Settings SettingsFromEnvironment();

// INVALID_ARGUMENT with the name of the setting that makes no sense. Reads no key and calls nobody.
absl::Status Validate(const Settings& settings);

// INVALID_ARGUMENT for anything but http(s)://host[:port][/path]: user names, queries and fragments are refused,
// because a URL is stored and shown. Plain http only for loopback unless allowed.
absl::Status ValidateBaseUrl(const std::string& url, bool allow_plain_http);

// Whether the URL's host is localhost, 127.0.0.0/8 or ::1. False for what ValidateBaseUrl refuses.
bool IsLoopbackUrl(const std::string& url);

// Whether two base URLs are the same endpoint: scheme and host without regard to case, the default port spelt out or
// not, trailing slashes ignored. False for what ValidateBaseUrl refuses.
bool SameEndpoint(const std::string& a, const std::string& b);

}  // namespace grove::llm
