#include "clients/cli/config.h"

#include <catch2/catch.hpp>
#include <map>

#include "absl/strings/match.h"

namespace grove::cli {
namespace {

TEST_CASE("A configuration has five keys, and paths start at its folder", "[cli]") {
  const auto config = ParseConfig(R"(
coordinator = "farm:7433"   # a comment
tls_ca = "ca.pem"
tls_cert = "/abs/me.crt"
tls_key = "sub/../me.key"
insecure = true
)",
                                  "/home/me/.config/grove/config.toml");
  REQUIRE(config.ok());
  CHECK(config->coordinator == "farm:7433");
  CHECK(config->tls_ca == "/home/me/.config/grove/ca.pem");
  CHECK(config->tls_cert == "/abs/me.crt");
  CHECK(config->tls_key == "/home/me/.config/grove/me.key");
  CHECK(config->insecure);
  CHECK(ParseConfig("", "c.toml")->coordinator.empty());
}

TEST_CASE("A wrong configuration names file and line", "[cli]") {
  struct Row {
    const char* text;
    const char* where;
    const char* what;
  };
  const auto row = GENERATE(values<Row>({
      {"coordinator = \"a:1\"\ncordinator = \"b:1\"\n", "c.toml:2: ", "did you mean 'coordinator'?"},
      {"\n\ncolour = 3\n", "c.toml:3: ", "unknown key 'colour'"},
      {"coordinator = 7\n", "c.toml:1: ", "must be a string"},
      {"insecure = \"yes\"\n", "c.toml:1: ", "must be true or false"},
      {"coordinator = \"a:1\"\ncoordinator = \n", "c.toml:2: ", ""},
      {"[coordinator\n", "c.toml:1: ", ""},
  }));
  CAPTURE(row.text);
  const auto config = ParseConfig(row.text, "c.toml");
  REQUIRE_FALSE(config.ok());
  CHECK(absl::IsInvalidArgument(config.status()));
  CAPTURE(std::string(config.status().message()));
  CHECK(absl::StartsWith(config.status().message(), row.where));
  CHECK(absl::StrContains(config.status().message(), row.what));
}

TEST_CASE("A missing configuration is an empty one unless it was asked for", "[cli]") {
  CHECK(LoadConfig("/nonexistent/config.toml", false).ok());
  CHECK_FALSE(LoadConfig("/nonexistent/config.toml", true).ok());
}

TEST_CASE("Folders follow the base-directory variables, when absolute", "[cli]") {
  std::map<std::string, std::string> variables = {{"HOME", "/home/me"}};
  const GetEnv env = [&](const char* name) { return variables[name]; };
  CHECK(DefaultConfigPath(env) == "/home/me/.config/grove/config.toml");
  CHECK(DefaultDataDir(env) == "/home/me/.local/share/grove");
  variables["XDG_CONFIG_HOME"] = "/x/c";
  variables["XDG_DATA_HOME"] = "/x/d";
  CHECK(DefaultConfigPath(env) == "/x/c/grove/config.toml");
  CHECK(DefaultDataDir(env) == "/x/d/grove");
  variables["XDG_DATA_HOME"] = "relative";
  CHECK(DefaultDataDir(env) == "/home/me/.local/share/grove");
}

}  // namespace
}  // namespace grove::cli
