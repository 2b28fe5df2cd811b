// Model calls over TLS against a local server: with a certificate that is right, and with each that is not.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/tls/certificates.h"
#include "coordinator/llm/curl_transport.h"
#include "coordinator/llm/openai_client.h"
#include "tests/support/fake_clock.h"
#include "tests/support/http_server.h"
#include "tests/support/temp_folder.h"

namespace grove::llm {
namespace {

// Answers every request that gets through the handshake with the same chat completion.
class TlsServer {
 public:
  // Without a certificate it speaks plain HTTP, and calls everything else a bad request.
  explicit TlsServer(const std::string& certificate = "", const std::string& key = "")
      : context_(SSL_CTX_new(TLS_server_method())), plain_(certificate.empty()) {
    signal(SIGPIPE, SIG_IGN);
    if (!plain_) Load(certificate, key);
    Listen();
    thread_ = std::thread([this] { Serve(); });
  }
  void Load(const std::string& certificate, const std::string& key) {
    REQUIRE(SSL_CTX_use_certificate_chain_file(context_, certificate.c_str()) == 1);
    REQUIRE(SSL_CTX_use_PrivateKey_file(context_, key.c_str(), SSL_FILETYPE_PEM) == 1);
  }
  void Listen() {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    REQUIRE(listen(listener_, 16) == 0);
    socklen_t size = sizeof(address);
    REQUIRE(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin_port);
    stop_ = eventfd(0, EFD_CLOEXEC);
  }
  ~TlsServer() {
    const uint64_t one = 1;
    (void)!write(stop_, &one, sizeof(one));
    thread_.join();
    close(listener_);
    close(stop_);
    SSL_CTX_free(context_);
  }
  std::string base_url() const { return absl::StrCat("https://127.0.0.1:", port_, "/v1"); }
  int connections() const { return connections_; }
  int requests() const { return requests_; }

 private:
  void Serve() {
    for (;;) {
      pollfd wait[2] = {{listener_, POLLIN, 0}, {stop_, POLLIN, 0}};
      if (poll(wait, 2, -1) < 0 || wait[1].revents != 0) return;
      const int fd = accept(listener_, nullptr, nullptr);
      if (fd < 0) continue;
      ++connections_;
      timeval patience = {10, 0};
      setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
      char request[16384];
      if (plain_) {
        const std::string_view refusal = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
        if (read(fd, request, sizeof(request)) > 0) (void)!write(fd, refusal.data(), refusal.size());
        close(fd);
        continue;
      }
      SSL* ssl = SSL_new(context_);
      SSL_set_fd(ssl, fd);
      // A client that refuses the certificate may have finished its side of the handshake: it then sends nothing.
      if (SSL_accept(ssl) == 1 && SSL_read(ssl, request, sizeof(request)) > 0) {
        ++requests_;
        const std::string body = testing::ChatReply("the answer").body;
        const std::string reply =
            absl::StrCat("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ", body.size(),
                         "\r\nConnection: close\r\n\r\n", body);
        SSL_write(ssl, reply.data(), static_cast<int>(reply.size()));
        SSL_shutdown(ssl);
      }
      ERR_clear_error();
      SSL_free(ssl);
      close(fd);
    }
  }

  SSL_CTX* context_;
  const bool plain_;
  int listener_ = -1, stop_ = -1, port_ = 0;
  std::atomic<int> connections_{0}, requests_{0};
  std::thread thread_;
};

// The authority that this process trusts. It is told to libcurl once, before the first call.
const std::string& TrustedAuthority() {
  static const testing::TempFolder* const folder = [] {
    auto* made = new testing::TempFolder;
    tls::CaOptions options;
    options.now = absl::Now() - absl::Hours(24 * 10);  // old enough for a certificate that has expired
    REQUIRE(tls::InitCa(made->path(), options).ok());
    unsetenv("CURL_CA_BUNDLE");  // it would come first
    setenv("SSL_CERT_FILE", (*made / "ca.crt").c_str(), 1);
    atexit([] { std::filesystem::remove_all(TrustedAuthority()); });
    return made;
  }();
  return folder->path();
}

class NoSleep : public Sleeper {
 public:
  bool Sleep(absl::Duration, CancelToken&) override {
    ++slept;
    return true;
  }
  int slept = 0;
};

struct Outcome {
  absl::StatusOr<Completion> completion;
  int slept;
};
Outcome Ask(const std::string& base_url) {
  TrustedAuthority();
  testing::FakeClock clock;
  Settings settings;
  settings.base_url = base_url;
  settings.model = "m";
  settings.api_key_env = "";
  settings.max_attempts = 3;
  OpenAiDeps deps;
  auto sleeper = std::make_shared<NoSleep>();
  deps.transport = std::make_shared<CurlTransport>();
  deps.sleeper = sleeper;
  deps.clock = &clock;
  deps.random = [] { return 0.5; };
  OpenAiClient client(settings, base_url, deps);
  auto completion = client.Complete({{"user", "hello"}}, {"m", 0, 0});
  return {std::move(completion), sleeper->slept};
}

TEST_CASE("A model behind a certificate of a trusted authority answers", "[llm][tls]") {
  const auto files = tls::Issue(TrustedAuthority(), "right", {"127.0.0.1"});
  REQUIRE(files.ok());
  TlsServer server(files->certificate, files->key);
  const Outcome outcome = Ask(server.base_url());
  INFO(outcome.completion.status());
  REQUIRE(outcome.completion.ok());
  CHECK(outcome.completion->text == "the answer");
}

TEST_CASE("A certificate that does not verify is told with its remedy, at once, and nothing is sent", "[llm][tls]") {
  TrustedAuthority();
  testing::TempFolder stranger;
  REQUIRE(tls::InitCa(stranger.path()).ok());
  tls::IssueOptions old;
  old.now = absl::Now() - absl::Hours(48);
  old.validity = absl::Hours(24);
  struct Row {
    const char* name;
    absl::StatusOr<tls::IssuedFiles> files;
  };
  const Row rows[] = {
      {"another authority", tls::Issue(stranger.path(), "server", {"127.0.0.1"})},
      {"another host", tls::Issue(TrustedAuthority(), "elsewhere", {"model.example"})},
      {"expired", tls::Issue(TrustedAuthority(), "expired", {"127.0.0.1"}, old)},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    REQUIRE(row.files.ok());
    TlsServer server(row.files->certificate, row.files->key);
    const Outcome outcome = Ask(server.base_url());
    CHECK(absl::IsInvalidArgument(outcome.completion.status()));
    CHECK(absl::StrContains(outcome.completion.status().message(), "the certificate of 127.0.0.1:"));
    CHECK(absl::StrContains(outcome.completion.status().message(), "does not verify"));
    CHECK(absl::StrContains(outcome.completion.status().message(), "SSL_CERT_FILE"));
    CHECK(outcome.slept == 0);
    CHECK(server.connections() == 1);
    CHECK(server.requests() == 0);
  }
}

TEST_CASE("https to a port that speaks plain http says so", "[llm][tls]") {
  TlsServer plain;
  const Outcome outcome = Ask(plain.base_url());
  INFO(outcome.completion.status());
  CHECK(absl::IsUnavailable(outcome.completion.status()));
  CHECK(absl::StrContains(outcome.completion.status().message(), "does it speak TLS?"));
}

}  // namespace
}  // namespace grove::llm
