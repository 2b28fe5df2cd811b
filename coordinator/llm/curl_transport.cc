#include "coordinator/llm/curl_transport.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/version.h"
#include "coordinator/llm/text.h"

namespace grove::llm {
namespace {

using SteadyClock = std::chrono::steady_clock;

// How often a waiting call looks at its cancel token and its own limits. 50 ms: a shutdown waits no longer for it, and
// 256 calls in flight wake 5,000 times a second, some milliseconds of one core.
constexpr int kPollMillis = 50;
constexpr size_t kMaxHeaderValue = 200;

struct EasyCloser {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct MultiCloser {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};

// Header lines, wiped when freed because one of them may hold the key.
class HeaderList {
 public:
  HeaderList() = default;
  HeaderList(const HeaderList&) = delete;
  HeaderList& operator=(const HeaderList&) = delete;
  ~HeaderList() {
    for (curl_slist* item = list_; item != nullptr; item = item->next) explicit_bzero(item->data, strlen(item->data));
    curl_slist_free_all(list_);
  }
  bool Add(const std::string& line) {
    curl_slist* longer = curl_slist_append(list_, line.c_str());
    if (longer == nullptr) return false;
    list_ = longer;
    return true;
  }
  curl_slist* get() const { return list_; }

 private:
  curl_slist* list_ = nullptr;
};

// What the callbacks fill in.
struct Exchange {
  HttpResponse response;
  int64_t max_bytes = 0;
  bool too_large = false;
  bool first_byte_seen = false;
  SteadyClock::time_point last_byte;
};

size_t OnBody(char* data, size_t size, size_t count, void* user) {
  auto* exchange = static_cast<Exchange*>(user);
  const size_t bytes = size * count;
  exchange->first_byte_seen = true;
  exchange->last_byte = SteadyClock::now();
  if (static_cast<int64_t>(exchange->response.body.size() + bytes) > exchange->max_bytes) {
    exchange->too_large = true;
    return 0;  // ends the transfer with CURLE_WRITE_ERROR
  }
  exchange->response.body.append(data, bytes);
  return bytes;
}

// libcurl bounds a header line (100 KiB) and their sum (300 KiB).
size_t OnHeader(char* data, size_t size, size_t count, void* user) {
  auto* exchange = static_cast<Exchange*>(user);
  const absl::string_view line(data, size * count);
  const size_t colon = line.find(':');
  if (colon != absl::string_view::npos) {
    const absl::string_view name = line.substr(0, colon);
    const std::string value = OneLine(line.substr(colon + 1), kMaxHeaderValue);
    if (absl::EqualsIgnoreCase(name, "content-type")) {
      exchange->response.content_type = value;
    } else if (absl::EqualsIgnoreCase(name, "retry-after")) {
      exchange->response.retry_after = value;
    } else if (absl::EqualsIgnoreCase(name, "retry-after-ms")) {
      exchange->response.retry_after_ms = value;
    } else if (absl::EqualsIgnoreCase(name, "location")) {
      exchange->response.location = value;
    }
  } else if (absl::StartsWith(line, "HTTP/")) {
    // A new status line: what came before was an interim answer (100 Continue) or a proxy's.
    exchange->response = HttpResponse{};
  }
  return size * count;
}

// The certificates to trust, where libcurl's built-in path does not exist: a binary that was built on one distribution
// and runs on another. Empty = libcurl's own.
const std::string& CaBundle() {
  static const std::string* const path = [] {
    for (const char* name : {"CURL_CA_BUNDLE", "SSL_CERT_FILE"}) {
      const char* value = getenv(name);
      if (value != nullptr && *value != '\0') return new std::string(value);
    }
    for (const char* candidate : {"/etc/ssl/certs/ca-certificates.crt",                 // Debian, Ubuntu, Arch
                                  "/etc/pki/tls/certs/ca-bundle.crt",                   // Fedora, RHEL
                                  "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  // RHEL 7 and later
                                  "/etc/ssl/ca-bundle.pem",                             // SUSE
                                  "/etc/ssl/cert.pem"}) {                               // Alpine
      if (access(candidate, R_OK) == 0) return new std::string(candidate);
    }
    return new std::string();
  }();
  return *path;
}

std::string HostOf(const std::string& url) {
  const size_t begin = url.find("://");
  if (begin == std::string::npos) return "the server";
  return OneLine(url.substr(begin + 3, url.find('/', begin + 3) - begin - 3), 200);
}

absl::Status Failure(CURLcode code, const char* detail, const std::string& host) {
  const std::string why = OneLine(*detail != '\0' ? detail : curl_easy_strerror(code), 300);
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
      return absl::InvalidArgumentError(
          absl::StrCat("the certificate of ", host, " does not verify (", why,
                       "); check the URL and the clock, or name the certificates to trust in SSL_CERT_FILE"));
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
      return absl::InvalidArgumentError(absl::StrCat("cannot call ", host, ": ", why, "; check the base URL"));
    case CURLE_SSL_CONNECT_ERROR:  // or the connection was cut in the middle of the handshake: tried again
      return absl::UnavailableError(absl::StrCat("no TLS connection to ", host, " (", why,
                                                 "); does it speak TLS? An endpoint without it has a URL that begins "
                                                 "with http://"));
    case CURLE_OUT_OF_MEMORY:
      return absl::UnavailableError(absl::StrCat("out of memory while calling ", host));
    default:
      return absl::UnavailableError(absl::StrCat("no answer from ", host, ": ", why));
  }
}

std::string Seconds(absl::Duration duration) { return absl::StrCat(absl::ToDoubleSeconds(duration), " s"); }

}  // namespace

CurlTransport::CurlTransport() {
  // Once per process, before any thread calls libcurl; what it holds is freed at exit by the system.
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  (void)initialised;
}

absl::StatusOr<HttpResponse> CurlTransport::Post(const HttpRequest& request, CancelToken& cancel) {
  const std::string host = HostOf(request.url);
  std::unique_ptr<CURLM, MultiCloser> multi(curl_multi_init());
  std::unique_ptr<CURL, EasyCloser> easy(curl_easy_init());
  if (multi == nullptr || easy == nullptr) return absl::UnavailableError("out of memory while preparing a model call");

  HeaderList headers;
  bool made = headers.Add("Content-Type: application/json") && headers.Add("Accept: application/json") &&
              // Without this libcurl asks for permission to send a body above 1 MiB and waits a second for the answer.
              headers.Add("Expect:");
  if (made && request.bearer != nullptr && !request.bearer->empty()) {
    const Secret line(absl::StrCat("Authorization: Bearer ", request.bearer->value()));
    made = headers.Add(line.value());
  }
  if (!made) return absl::UnavailableError("out of memory while preparing a model call");

  Exchange exchange;
  exchange.max_bytes = request.max_response_bytes;
  char detail[CURL_ERROR_SIZE] = "";
  CURL* const h = easy.get();
  curl_easy_setopt(h, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L);  // a redirect would carry the prompt, and maybe the key, elsewhere
  curl_easy_setopt(h, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
  curl_easy_setopt(h, CURLOPT_SSL_VERIFYPEER, 1L);
  curl_easy_setopt(h, CURLOPT_SSL_VERIFYHOST, 2L);
  if (!CaBundle().empty()) curl_easy_setopt(h, CURLOPT_CAINFO, CaBundle().c_str());
  if (request.direct) curl_easy_setopt(h, CURLOPT_PROXY, "");
  curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);  // threads
  curl_easy_setopt(h, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(h, CURLOPT_HEADEROPT, static_cast<long>(CURLHEADER_SEPARATE));  // nothing of ours to a proxy
  curl_easy_setopt(h, CURLOPT_USERAGENT, absl::StrCat("grove/", kVersion).c_str());
  curl_easy_setopt(h, CURLOPT_POST, 1L);
  curl_easy_setopt(h, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  curl_easy_setopt(h, CURLOPT_POSTFIELDS, request.body.data());
  curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, &OnBody);
  curl_easy_setopt(h, CURLOPT_WRITEDATA, &exchange);
  curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, &OnHeader);
  curl_easy_setopt(h, CURLOPT_HEADERDATA, &exchange);
  curl_easy_setopt(h, CURLOPT_ERRORBUFFER, detail);
  curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(absl::ToInt64Milliseconds(request.connect_timeout)));
  curl_easy_setopt(h, CURLOPT_TCP_KEEPALIVE, 1L);  // a NAT between forgets a silent connection after some minutes
  curl_easy_setopt(h, CURLOPT_TCP_KEEPIDLE, 30L);
  curl_easy_setopt(h, CURLOPT_TCP_KEEPINTVL, 30L);

  if (curl_multi_add_handle(multi.get(), h) != CURLM_OK) {
    return absl::UnavailableError("out of memory while preparing a model call");
  }
  // Detached before both are freed, whichever way this ends.
  struct Detach {
    CURLM* multi;
    CURL* easy;
    ~Detach() { curl_multi_remove_handle(multi, easy); }
  } detach{multi.get(), h};

  const SteadyClock::time_point start = SteadyClock::now();
  const auto since = [](SteadyClock::time_point then) { return absl::FromChrono(SteadyClock::now() - then); };
  while (true) {
    int running = 0;
    if (const CURLMcode code = curl_multi_perform(multi.get(), &running); code != CURLM_OK) {
      return absl::UnavailableError(absl::StrCat("libcurl: ", curl_multi_strerror(code)));
    }
    if (running == 0) break;
    if (cancel.cancelled()) return absl::CancelledError("the model call was cancelled");
    // libcurl's own low-speed limit counts whole seconds and cannot tell waiting for an answer from a stall inside it.
    absl::Duration left = request.total_timeout - since(start);
    if (left <= absl::ZeroDuration()) {
      return absl::UnavailableError(
          absl::StrCat("the answer of ", host, " was not complete after ", Seconds(request.total_timeout)));
    }
    if (exchange.first_byte_seen) {
      left = std::min(left, request.stall_timeout - since(exchange.last_byte));
      if (left <= absl::ZeroDuration()) {
        return absl::UnavailableError(absl::StrCat(host, " stalled: nothing for ", Seconds(request.stall_timeout),
                                                   " in the middle of its answer, after ",
                                                   exchange.response.body.size(), " bytes"));
      }
    } else {
      left = std::min(left, request.first_byte_timeout - since(start));
      if (left <= absl::ZeroDuration()) {
        return absl::UnavailableError(
            absl::StrCat("no answer from ", host, " within ", Seconds(request.first_byte_timeout)));
      }
    }
    const int wait = static_cast<int>(std::clamp<int64_t>(absl::ToInt64Milliseconds(left) + 1, 1, kPollMillis));
    if (const CURLMcode code = curl_multi_poll(multi.get(), nullptr, 0, wait, nullptr); code != CURLM_OK) {
      return absl::UnavailableError(absl::StrCat("libcurl: ", curl_multi_strerror(code)));
    }
  }
  CURLcode result = CURLE_GOT_NOTHING;
  int remaining = 0;
  while (CURLMsg* message = curl_multi_info_read(multi.get(), &remaining)) {
    if (message->msg == CURLMSG_DONE) result = message->data.result;
  }
  if (exchange.too_large) {
    return absl::DataLossError(
        absl::StrCat("the answer of ", host, " is larger than ", request.max_response_bytes, " bytes"));
  }
  if (result != CURLE_OK) return Failure(result, detail, host);
  long status = 0;
  curl_easy_getinfo(h, CURLINFO_RESPONSE_CODE, &status);
  exchange.response.status = static_cast<int>(status);
  return std::move(exchange.response);
}

}  // namespace grove::llm
