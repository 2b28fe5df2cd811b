// One HTTP POST. The interface keeps libcurl out of everything else.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "coordinator/llm/api_key.h"
#include "coordinator/llm/cancel.h"

namespace grove::llm {

struct HttpRequest {
  std::string url;
  std::string body;                // sent as application/json
  const Secret* bearer = nullptr;  // not owned; null or empty = no Authorization header
  bool direct = false;             // never through a proxy
  absl::Duration connect_timeout;
  absl::Duration first_byte_timeout;  // from the start to the first byte of the answer's body
  absl::Duration stall_timeout;       // between two bytes of the body
  absl::Duration total_timeout;
  int64_t max_response_bytes = 0;
};

struct HttpResponse {
  int status = 0;
  std::string content_type;  // as sent, at most 200 bytes
  std::string retry_after;   // header values as sent, at most 200 bytes, empty = absent
  std::string retry_after_ms;
  std::string location;
  std::string body;
};

// Thread-safe.
class HttpTransport {
 public:
  virtual ~HttpTransport() = default;
  // The whole answer, whatever its status; redirects are answers like any other. Errors: UNAVAILABLE = the connection
  // could not be made, was lost, was silent or took too long (worth another try); INVALID_ARGUMENT = it never will work
  // so (a certificate that does not verify, an impossible URL); DATA_LOSS = larger than max_response_bytes; CANCELLED.
  // Messages hold the URL's host and the cause, never headers or bodies.
  virtual absl::StatusOr<HttpResponse> Post(const HttpRequest& request, CancelToken& cancel) = 0;
};

}  // namespace grove::llm
