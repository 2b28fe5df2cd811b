// The operator's HTTP port: GET /metrics (Prometheus text format) and GET /healthz (200 or 503 with the reason).
//
// Plain HTTP without authentication, as Prometheus' own exporters have it: figures, no sources and no results. It
// listens only where it is told to.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/metrics/families.h"

namespace grove::metrics {

// Thread-safe.
class HttpEndpoint {
 public:
  using Collect = std::function<Families()>;     // called on a web thread for each scrape; bounds its own waiting
  using Health = std::function<absl::Status()>;  // likewise; OK = 200, else 503 with the message

  // `listen` is "host:port" with a numeric host or localhost, port 0 = any free one. Errors name address and cause.
  static absl::StatusOr<std::unique_ptr<HttpEndpoint>> Start(const std::string& listen, Collect collect, Health health);
  ~HttpEndpoint();  // waits for requests being served
  HttpEndpoint(const HttpEndpoint&) = delete;
  HttpEndpoint& operator=(const HttpEndpoint&) = delete;

  const std::string& address() const { return address_; }  // "127.0.0.1:9464", with the port really bound

 private:
  struct Impl;
  explicit HttpEndpoint(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
  std::string address_;
};

}  // namespace grove::metrics
