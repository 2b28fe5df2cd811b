#include "common/tls/certificates.h"

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "common/base/files.h"
#include "tests/support/temp_folder.h"

namespace grove::tls {
namespace {

using testing::TempFolder;

std::string Read(const std::string& path) {
  auto content = ReadFile(path, 1 << 20);
  REQUIRE(content.ok());
  return *content;
}

int ModeOf(const std::string& path) {
  struct stat info {};
  REQUIRE(stat(path.c_str(), &info) == 0);
  return info.st_mode & 0777;
}

struct FreeX509 {
  void operator()(X509* x) const { X509_free(x); }
};
std::unique_ptr<X509, FreeX509> Parse(const std::string& pem) {
  BIO* bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  std::unique_ptr<X509, FreeX509> x(PEM_read_bio_X509(bio, nullptr, nullptr, nullptr));
  BIO_free(bio);
  REQUIRE(x != nullptr);
  return x;
}

// Whether OpenSSL's own verifier accepts `leaf` as signed by `ca` for `purpose`.
bool Verifies(X509* leaf, X509* ca, int purpose) {
  X509_STORE* store = X509_STORE_new();
  X509_STORE_add_cert(store, ca);
  X509_STORE_CTX* context = X509_STORE_CTX_new();
  X509_STORE_CTX_init(context, store, leaf, nullptr);
  X509_STORE_CTX_set_purpose(context, purpose);
  X509_STORE_CTX_set_flags(context, X509_V_FLAG_X509_STRICT);
  const bool ok = X509_verify_cert(context) == 1;
  INFO(X509_verify_cert_error_string(X509_STORE_CTX_get_error(context)));
  X509_STORE_CTX_free(context);
  X509_STORE_free(store);
  return ok;
}

TEST_CASE("A new authority signs certificates that a strict verifier accepts for both ends", "[tls]") {
  TempFolder folder;
  const std::string dir = folder / "certs";
  REQUIRE(InitCa(dir).ok());
  auto files = Issue(dir, "coordinator", {"grove.example.org", "*.farm.example.org", "10.1.2.3", "fd00::1"});
  REQUIRE(files.ok());
  auto ca = Parse(Read(dir + "/ca.crt"));
  auto leaf = Parse(Read(files->certificate));
  CHECK(Verifies(leaf.get(), ca.get(), X509_PURPOSE_SSL_SERVER));
  CHECK(Verifies(leaf.get(), ca.get(), X509_PURPOSE_SSL_CLIENT));
  CHECK(X509_check_host(leaf.get(), "grove.example.org", 0, 0, nullptr) == 1);
  CHECK(X509_check_host(leaf.get(), "a.farm.example.org", 0, 0, nullptr) == 1);
  CHECK(X509_check_host(leaf.get(), "example.org", 0, 0, nullptr) == 0);
  CHECK(X509_check_ip_asc(leaf.get(), "10.1.2.3", 0) == 1);
  CHECK(X509_check_ip_asc(leaf.get(), "fd00::1", 0) == 1);
  CHECK(X509_check_ip_asc(leaf.get(), "10.1.2.4", 0) == 0);
  CHECK(CheckKeyPair(Read(files->certificate), Read(files->key), Read(files->ca), absl::Now(), "test").ok());
}

TEST_CASE("Without names a certificate is for this machine", "[tls]") {
  TempFolder folder;
  REQUIRE(InitCa(folder.path()).ok());
  auto files = Issue(folder.path(), "local", {});
  REQUIRE(files.ok());
  auto leaf = Parse(Read(files->certificate));
  CHECK(X509_check_host(leaf.get(), "localhost", 0, 0, nullptr) == 1);
  CHECK(X509_check_ip_asc(leaf.get(), "127.0.0.1", 0) == 1);
  CHECK(X509_check_ip_asc(leaf.get(), "::1", 0) == 1);
}

TEST_CASE("Keys are for their owner alone", "[tls]") {
  TempFolder folder;
  const std::string dir = folder / "new";
  REQUIRE(InitCa(dir).ok());
  REQUIRE(Issue(dir, "w1", {}).ok());
  CHECK(ModeOf(dir) == 0700);
  CHECK(ModeOf(dir + "/ca.key") == 0600);
  CHECK(ModeOf(dir + "/w1.key") == 0600);
  CHECK(ModeOf(dir + "/w1.crt") == 0644);
}

TEST_CASE("Nothing is overwritten unless asked", "[tls]") {
  TempFolder folder;
  REQUIRE(InitCa(folder.path()).ok());
  const std::string before = Read(folder / "ca.crt");
  CHECK(absl::IsAlreadyExists(InitCa(folder.path())));
  CHECK(Read(folder / "ca.crt") == before);
  REQUIRE(Issue(folder.path(), "a", {}).ok());
  const std::string key = Read(folder / "a.key");
  CHECK(absl::IsAlreadyExists(Issue(folder.path(), "a", {}).status()));
  CHECK(Read(folder / "a.key") == key);
  IssueOptions again;
  again.overwrite = true;
  CHECK(Issue(folder.path(), "a", {}, again).ok());
  CHECK(Read(folder / "a.key") != key);
}

TEST_CASE("What cannot be issued says why", "[tls]") {
  TempFolder folder;
  auto none = Issue(folder.path(), "a", {}).status();
  CHECK(absl::IsNotFound(none));
  CHECK(absl::StrContains(none.message(), "grove certs init"));
  REQUIRE(InitCa(folder.path()).ok());
  const std::string name = GENERATE(as<std::string>{}, "", "../evil", "a/b", ".hidden", "-flag", "ca", "with space");
  CAPTURE(name);
  CHECK(absl::IsInvalidArgument(Issue(folder.path(), name, {}).status()));
  const std::string san =
      GENERATE(as<std::string>{}, "http://x", "a b", "1.2.3", "300.1.1.1", "host:7433", "[::1]", "-x.org", "a..b", "");
  CAPTURE(san);
  auto bad = Issue(folder.path(), "good", {"ok.example.org", san}).status();
  CHECK(absl::IsInvalidArgument(bad));
  CHECK(absl::StrContains(bad.message(), "\"" + san + "\""));
}

TEST_CASE("A key pair that does not fit, has expired or is no PEM is refused by name", "[tls]") {
  TempFolder folder;
  REQUIRE(InitCa(folder.path()).ok());
  auto a = Issue(folder.path(), "a", {});
  auto b = Issue(folder.path(), "b", {});
  REQUIRE(a.ok());
  REQUIRE(b.ok());
  auto check = [&](const std::string& cert, const std::string& key, absl::Time now) {
    return std::string(CheckKeyPair(cert, key, "", now, "the files").message());
  };
  const std::string cert = Read(a->certificate), key = Read(a->key);
  CHECK(absl::StrContains(check(cert, Read(b->key), absl::Now()), "does not belong"));
  CHECK(absl::StrContains(check(cert, key, absl::Now() + absl::Hours(24 * 400)), "expired"));
  CHECK(absl::StrContains(check(cert, key, absl::Now() - absl::Hours(1)), "not valid yet"));
  CHECK(absl::StrContains(check("junk", key, absl::Now()), "not a PEM"));
  CHECK(absl::StrContains(check(cert, "junk", absl::Now()), "private key"));
  CHECK(check(cert, key, absl::Now()) == "");
}

TEST_CASE("An expired authority issues nothing", "[tls]") {
  TempFolder folder;
  CaOptions old;
  old.now = absl::Now() - absl::Hours(48);
  old.validity = absl::Hours(24);
  REQUIRE(InitCa(folder.path(), old).ok());
  auto issued = Issue(folder.path(), "a", {});
  CHECK_FALSE(issued.ok());
  CHECK(absl::StrContains(issued.status().message(), "expired"));
}

}  // namespace
}  // namespace grove::tls
