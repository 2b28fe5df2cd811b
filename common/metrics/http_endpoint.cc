#include "common/metrics/http_endpoint.h"

#include <civetweb.h>
#include <prometheus/text_serializer.h>

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"

namespace grove::metrics {
namespace {

void Answer(mg_connection* connection, int code, const char* phrase, const std::string& type, const std::string& body) {
  const bool head = std::strcmp(mg_get_request_info(connection)->request_method, "HEAD") == 0;
  mg_printf(connection,
            "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nCache-Control: no-store\r\nConnection: "
            "close\r\n%s\r\n",
            code, phrase, type.c_str(), body.size(), code == 405 ? "Allow: GET, HEAD\r\n" : "");
  if (!head) mg_write(connection, body.data(), body.size());
}

bool IsRead(const mg_connection* connection) {
  const char* method = mg_get_request_info(connection)->request_method;
  return std::strcmp(method, "GET") == 0 || std::strcmp(method, "HEAD") == 0;
}

int Log(const mg_connection*, const char* message) {
  LogDebug("http", message);
  return 1;  // handled: nothing on stderr
}

}  // namespace

struct HttpEndpoint::Impl {
  Collect collect;
  Health health;
  mg_context* context = nullptr;

  static int OnMetrics(mg_connection* connection, void* data) {
    auto* self = static_cast<Impl*>(data);
    if (!IsRead(connection)) {
      Answer(connection, 405, "Method Not Allowed", "text/plain; charset=utf-8", "only GET\n");
      return 405;
    }
    Answer(connection, 200, "OK", "text/plain; version=0.0.4; charset=utf-8",
           prometheus::TextSerializer().Serialize(self->collect()));
    return 200;
  }

  static int OnHealth(mg_connection* connection, void* data) {
    auto* self = static_cast<Impl*>(data);
    if (!IsRead(connection)) {
      Answer(connection, 405, "Method Not Allowed", "text/plain; charset=utf-8", "only GET\n");
      return 405;
    }
    const absl::Status status = self->health();
    if (status.ok()) {
      Answer(connection, 200, "OK", "text/plain; charset=utf-8", "ok\n");
      return 200;
    }
    Answer(connection, 503, "Service Unavailable", "text/plain; charset=utf-8", absl::StrCat(status.message(), "\n"));
    return 503;
  }

  static int OnOther(mg_connection* connection, void*) {
    Answer(connection, 404, "Not Found", "text/plain; charset=utf-8", "there are /metrics and /healthz\n");
    return 404;
  }
};

HttpEndpoint::HttpEndpoint(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

absl::StatusOr<std::unique_ptr<HttpEndpoint>> HttpEndpoint::Start(const std::string& listen, Collect collect,
                                                                  Health health) {
  // civetweb reads a list with suffixes ("80r,443s"); only one plain address is meant here.
  const std::size_t colon = listen.rfind(':');
  const std::string port = colon == std::string::npos ? "" : listen.substr(colon + 1);
  if (port.empty() || port.size() > 5 || port.find_first_not_of("0123456789") != std::string::npos ||
      std::stoi(port) > 65535 || listen.find_first_of(", +") != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("--metrics-listen \"", listen, "\" is not an address: write host:port, such as 127.0.0.1:9464"));
  }
  std::string host = listen.substr(0, colon);
  if (host.empty()) host = "0.0.0.0";
  if (host == "localhost") host = "127.0.0.1";

  auto impl = std::make_unique<Impl>();
  impl->collect = std::move(collect);
  impl->health = std::move(health);
  mg_callbacks callbacks;
  std::memset(&callbacks, 0, sizeof(callbacks));
  callbacks.log_message = Log;
  const std::string where = absl::StrCat(host, ":", port);
  // Two threads: a scrape that waits for the engine does not hold up a health check. 5 s for a request to arrive: it is
  // one line.
  const char* options[] = {
      "listening_ports",  where.c_str(), "num_threads", "2", "request_timeout_ms", "5000", "enable_keep_alive", "no",
      "max_request_size", "8192",        nullptr};
  char text[256] = "";
  unsigned code = 0;
  mg_error_data error{&code, text, sizeof(text)};
  mg_init_data init{&callbacks, impl.get(), options};
  mg_init_library(0);
  impl->context = mg_start2(&init, &error);
  if (impl->context == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("cannot serve metrics on ", listen, ": ", text[0] != '\0' ? text : "unknown error",
                     "; is the port in use? Choose another with --metrics-listen (port 0 takes any free one)"));
  }
  mg_set_request_handler(impl->context, "/metrics$", Impl::OnMetrics, impl.get());
  mg_set_request_handler(impl->context, "/healthz$", Impl::OnHealth, impl.get());
  mg_set_request_handler(impl->context, "/", Impl::OnOther, impl.get());
  mg_server_port bound[1];
  std::memset(bound, 0, sizeof(bound));
  std::unique_ptr<HttpEndpoint> endpoint(new HttpEndpoint(std::move(impl)));
  if (mg_get_server_ports(endpoint->impl_->context, 1, bound) < 1) {
    return absl::InternalError(absl::StrCat("cannot tell the port of ", listen));
  }
  endpoint->address_ = absl::StrCat(host, ":", bound[0].port);
  return endpoint;
}

HttpEndpoint::~HttpEndpoint() {
  if (impl_ != nullptr && impl_->context != nullptr) mg_stop(impl_->context);
}

}  // namespace grove::metrics
