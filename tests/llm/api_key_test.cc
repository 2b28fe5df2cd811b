#include "coordinator/llm/api_key.h"

#include <stdlib.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "common/base/ids.h"

namespace grove::llm {
namespace {

// A file that is gone afterwards.
class TempFile {
 public:
  explicit TempFile(const std::string& content) : path_("/tmp/" + RandomId("grove-key-", 12)) {
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~TempFile() { unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Settings FromFile(const std::string& path) {
  Settings settings;
  settings.api_key_file = path;
  return settings;
}

TEST_CASE("A key is the first line of its file, without the white space around it", "[llm]") {
  const TempFile file("  sk-first-0123456789 \r\nsecond line\n");
  absl::StatusOr<Secret> key = ReadApiKey(FromFile(file.path()));
  REQUIRE(key.ok());
  CHECK(key->value() == "sk-first-0123456789");
}

TEST_CASE("A key file that cannot serve is refused without its content", "[llm]") {
  const TempFile empty("\n");
  const TempFile blank("sk-very secret\n");
  const TempFile control("sk-very\x01secret\n");
  const TempFile huge(std::string(20000, 's'));
  for (const std::string& path : {empty.path(), blank.path(), control.path(), huge.path(),
                                  std::string("/nonexistent/key"), std::string("/tmp")}) {
    CAPTURE(path);
    absl::StatusOr<Secret> key = ReadApiKey(FromFile(path));
    REQUIRE_FALSE(key.ok());
    CHECK(key.status().code() == absl::StatusCode::kUnauthenticated);
    CHECK(key.status().message().find("secret") == absl::string_view::npos);
    CHECK(key.status().message().find(path) != absl::string_view::npos);
  }
}

TEST_CASE("Without a file the key comes from the environment, read anew each time", "[llm]") {
  Settings settings;
  settings.api_key_env = "GROVE_TEST_KEY_VARIABLE";
  CHECK(ReadApiKey(settings)->empty());
  setenv("GROVE_TEST_KEY_VARIABLE", "sk-one", 1);
  CHECK(ReadApiKey(settings)->value() == "sk-one");
  setenv("GROVE_TEST_KEY_VARIABLE", "sk-two", 1);
  CHECK(ReadApiKey(settings)->value() == "sk-two");
  unsetenv("GROVE_TEST_KEY_VARIABLE");
}

TEST_CASE("A secret is wiped where it was moved from", "[llm]") {
  Secret first(std::string("sk-0123456789abcdef0123456789abcdef"));
  Secret second(std::move(first));
  CHECK(first.empty());  // NOLINT(bugprone-use-after-move): that it is empty is the point
  CHECK(second.value() == "sk-0123456789abcdef0123456789abcdef");
  first = std::move(second);
  CHECK(second.empty());  // NOLINT(bugprone-use-after-move)
  CHECK(first.value().size() == 35);
}

TEST_CASE("Redaction removes every occurrence of a real key and leaves stand-ins alone", "[llm]") {
  const Secret key(std::string("sk-0123456789"));
  CHECK(Redact("a sk-0123456789 b sk-0123456789", key) == "a [key] b [key]");
  CHECK(Redact("int x = EMPTY;", Secret(std::string("EMPTY"))) == "int x = EMPTY;");
  CHECK(Redact("text", Secret()) == "text");
}

}  // namespace
}  // namespace grove::llm
