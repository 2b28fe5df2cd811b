#include "clients/cli/audit_host.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace grove::cli {
namespace {

TEST_CASE("What a case of the audit leaves on the machine is found", "[audit]") {
  auto host = AuditHost::Begin(absl::StrCat("/tmp/grove-audit-host-test-", getpid()));
  REQUIRE(host.ok());
  const std::vector<std::string> before = host->Traces(absl::ZeroDuration());
  const std::string path = absl::StrCat("/tmp/", kExploitMark, "-test-", getpid());
  { std::ofstream file(path); }
  const std::vector<std::string> after = host->Traces(absl::ZeroDuration());
  unlink(path.c_str());
  CHECK(after.size() == before.size() + 1);
  bool named = false;
  for (const std::string& one : after) named = named || absl::StrContains(one, path);
  CHECK(named);
}

TEST_CASE("A planted secret or a line of a password file in a result is found", "[audit]") {
  const std::string path = absl::StrCat("/tmp/grove-audit-host-test-", getpid());
  std::string secret;
  {
    auto host = AuditHost::Begin(path);
    REQUIRE(host.ok());
    std::ifstream(path) >> secret;
    REQUIRE(secret.size() == 32);
    CHECK(host->Told("error: expected ';' before '}' token").empty());
    CHECK(host->Told(absl::StrCat("kernel.cpp:1:1: error: '", secret, "' does not name a type")).size() == 1);
    CHECK(host->Told("root:*:19000:0:99999:7:::").size() == 1);
  }
  CHECK(access(path.c_str(), F_OK) != 0);
}

}  // namespace
}  // namespace grove::cli
