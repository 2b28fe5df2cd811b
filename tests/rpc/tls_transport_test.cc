#include <grpcpp/grpcpp.h>

#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/match.h"
#include "common/base/files.h"
#include "common/rpc/channel.h"
#include "common/rpc/status.h"
#include "common/tls/certificates.h"
#include "grove/v1/services.grpc.pb.h"
#include "tests/rpc/coordinator_fixture.h"
#include "tests/support/temp_folder.h"

namespace grove {
namespace {

using testing::ServedEngine;
using testing::TempFolder;

// Two authorities; certificates for both ends from the first, and the ones that must not be accepted.
struct Pki {
  TempFolder folder;
  std::string good = folder / "good", other = folder / "other";
  Pki() {
    REQUIRE(tls::InitCa(good).ok());
    REQUIRE(tls::InitCa(other).ok());
    REQUIRE(tls::Issue(good, "server", {}).ok());
    REQUIRE(tls::Issue(good, "client", {"client.example.org"}).ok());
    REQUIRE(tls::Issue(other, "client", {"client.example.org"}).ok());
    REQUIRE(tls::Issue(other, "server", {}).ok());
    REQUIRE(tls::Issue(good, "elsewhere", {"elsewhere.example.org"}).ok());
  }
  rpc::TlsFiles Files(const std::string& dir, const std::string& name, const std::string& ca_dir) const {
    rpc::TlsFiles files;
    if (!name.empty()) files.cert = dir + "/" + name + ".crt";
    if (!name.empty()) files.key = dir + "/" + name + ".key";
    if (!ca_dir.empty()) files.ca = ca_dir + "/ca.crt";
    return files;
  }
};

absl::Status Call(const std::string& address, const rpc::TlsFiles& tls, const std::string& name = "") {
  auto channel = rpc::CreateChannel({address, tls, false, name});
  if (!channel.ok()) return channel.status();
  auto stub = v1::Farm::NewStub(*channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  v1::FarmInfo info;
  return rpc::FromGrpc(stub->GetFarmInfo(&context, v1::GetFarmInfoRequest(), &info));
}

TEST_CASE("Mutual TLS lets in who has a certificate of the authority, and nobody else", "[tls]") {
  Pki pki;
  rpc::ServerOptions options;
  options.tls = pki.Files(pki.good, "server", pki.good);
  ServedEngine served(options);
  const std::string address = served.address();
  CHECK(Call(address, pki.Files(pki.good, "client", pki.good)).ok());
  CHECK(absl::IsUnavailable(Call(address, pki.Files("", "", pki.good))));               // no certificate
  CHECK(absl::IsUnavailable(Call(address, pki.Files(pki.other, "client", pki.good))));  // of another authority
  CHECK(absl::IsUnavailable(Call(address, pki.Files(pki.good, "client", pki.other))));  // trusts another authority
  CHECK(absl::IsUnavailable(Call(address, {})));                                        // plain text
  CHECK(Call(address, pki.Files(pki.good, "client", pki.good)).ok());                   // and still serves
}

TEST_CASE("Server TLS asks no certificate of clients, but clients check the server's", "[tls]") {
  Pki pki;
  rpc::ServerOptions options;
  options.tls = pki.Files(pki.good, "server", "");
  ServedEngine served(options);
  CHECK(Call(served.address(), pki.Files("", "", pki.good)).ok());
  CHECK(absl::IsUnavailable(Call(served.address(), pki.Files("", "", pki.other))));
}

TEST_CASE("A certificate for another host is refused unless that name is asked for", "[tls]") {
  Pki pki;
  rpc::ServerOptions options;
  options.tls = pki.Files(pki.good, "elsewhere", "");
  ServedEngine served(options);
  CHECK(absl::IsUnavailable(Call(served.address(), pki.Files("", "", pki.good))));
  CHECK(Call(served.address(), pki.Files("", "", pki.good), "elsewhere.example.org").ok());
}

TEST_CASE("A client certificate that has expired is refused by the server", "[tls]") {
  Pki pki;
  rpc::ServerOptions options;
  options.tls = pki.Files(pki.good, "server", pki.good);
  ServedEngine served(options);
  tls::IssueOptions old;
  old.now = absl::Now() - absl::Hours(48);
  old.validity = absl::Hours(24);
  // The authority's own validity began now; one that began earlier signs the expired certificate.
  const std::string dir = pki.folder / "old";
  tls::CaOptions early;
  early.now = old.now;
  REQUIRE(tls::InitCa(dir, early).ok());
  auto expired = tls::Issue(dir, "client", {}, old);
  REQUIRE(expired.ok());
  // Our own client notices before it dials.
  rpc::TlsFiles files = pki.Files(dir, "client", pki.good);
  CHECK(absl::StrContains(Call(served.address(), files).message(), "expired"));
  // One that does not look is refused by the server that trusts that authority.
  rpc::ServerOptions trusting;
  trusting.tls = pki.Files(pki.good, "server", dir);
  ServedEngine second(trusting);
  grpc::SslCredentialsOptions ssl;
  ssl.pem_root_certs = *ReadFile(pki.good + "/ca.crt", 1 << 20);
  ssl.pem_cert_chain = *ReadFile(expired->certificate, 1 << 20);
  ssl.pem_private_key = *ReadFile(expired->key, 1 << 20);
  auto call = [&](const grpc::SslCredentialsOptions& credentials) {
    auto stub = v1::Farm::NewStub(grpc::CreateChannel(second.address(), grpc::SslCredentials(credentials)));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    v1::FarmInfo info;
    return stub->GetFarmInfo(&context, v1::GetFarmInfoRequest(), &info);
  };
  CHECK(call(ssl).error_code() == grpc::StatusCode::UNAVAILABLE);
  // The control: a valid one of the same authority is let in.
  auto valid = tls::Issue(dir, "valid", {});
  REQUIRE(valid.ok());
  ssl.pem_cert_chain = *ReadFile(valid->certificate, 1 << 20);
  ssl.pem_private_key = *ReadFile(valid->key, 1 << 20);
  CHECK(call(ssl).ok());
}

TEST_CASE("A server with a certificate that has expired does not start", "[tls]") {
  TempFolder folder;
  tls::CaOptions early;
  early.now = absl::Now() - absl::Hours(48);
  REQUIRE(tls::InitCa(folder.path(), early).ok());
  tls::IssueOptions old;
  old.now = early.now;
  old.validity = absl::Hours(24);
  REQUIRE(tls::Issue(folder.path(), "server", {}, old).ok());
  rpc::ServerOptions options;
  options.listen = "127.0.0.1:0";
  options.tls.cert = folder / "server.crt";
  options.tls.key = folder / "server.key";
  auto server = rpc::Server::Start(options, {});
  CHECK(absl::IsInvalidArgument(server.status()));
  CHECK(absl::StrContains(server.status().message(), "expired"));
}

TEST_CASE("Plain text beyond this machine is refused at both ends unless asked for", "[tls]") {
  rpc::ServerOptions options;
  options.listen = GENERATE(as<std::string>{}, "0.0.0.0:0", "[::]:0", ":0", "192.0.2.1:0");
  CAPTURE(options.listen);
  auto server = rpc::Server::Start(options, {});
  REQUIRE(absl::IsFailedPrecondition(server.status()));
  CHECK(absl::StrContains(server.status().message(), "--insecure"));
  CHECK(absl::StrContains(server.status().message(), "--tls-cert"));
  auto channel = rpc::CreateChannel({"gpu-box.example.org:7433", {}, false, ""});
  REQUIRE(absl::IsFailedPrecondition(channel.status()));
  CHECK(absl::StrContains(channel.status().message(), "--insecure"));
  CHECK(rpc::CreateChannel({"gpu-box.example.org:7433", {}, true, ""}).ok());
}

TEST_CASE("With --insecure every interface serves plain text", "[tls]") {
  rpc::ServerOptions options;
  options.listen = "0.0.0.0:0";
  options.insecure = true;
  ServedEngine served(options);
  const std::string address = "127.0.0.1" + served.address().substr(served.address().rfind(':'));
  CHECK(Call(address, {}).ok());
}

TEST_CASE("TLS flags that make no sense are refused with the flag's name", "[tls]") {
  Pki pki;
  rpc::TlsFiles files;
  std::string word;
  SECTION("a certificate without its key") {
    files.cert = pki.good + "/server.crt";
    word = "--tls-key";
  }
  SECTION("a key without its certificate") {
    files.key = pki.good + "/server.key";
    word = "--tls-cert";
  }
  SECTION("a file that is not there") {
    files = pki.Files(pki.good, "nobody", "");
    word = "nobody.crt";
  }
  SECTION("a file that is no PEM") {
    files = pki.Files(pki.good, "server", "");
    files.ca = pki.folder / "text";
    REQUIRE(WriteFileAtomically(files.ca, "hello").ok());
    word = "--tls-ca";
  }
  SECTION("the key of another certificate") {
    files.cert = pki.good + "/server.crt";
    files.key = pki.good + "/client.key";
    word = "does not belong";
  }
  SECTION("only an authority on a server") {
    files.ca = pki.good + "/ca.crt";
    word = "--tls-cert";
  }
  rpc::ServerOptions options;
  options.listen = "127.0.0.1:0";
  options.tls = files;
  auto server = rpc::Server::Start(options, {});
  CHECK(absl::IsInvalidArgument(server.status()));
  CHECK(absl::StrContains(server.status().message(), word));
}

}  // namespace
}  // namespace grove
