// HttpTransport over libcurl: certificates verified, redirects not followed, HTTP and HTTPS only, no cookies, no
// .netrc, proxies from http_proxy, https_proxy, all_proxy and no_proxy as libcurl reads them (and none for loopback).
#pragma once

#include "coordinator/llm/http_transport.h"

namespace grove::llm {

// Thread-safe: every call has its own connection. A call lasts a minute, so a handshake (0.1 s) is not worth a pool.
class CurlTransport : public HttpTransport {
 public:
  CurlTransport();
  absl::StatusOr<HttpResponse> Post(const HttpRequest& request, CancelToken& cancel) override;
};

}  // namespace grove::llm
