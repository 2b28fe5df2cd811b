#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "clients/cli/completion.h"

namespace grove::cli {
namespace {

TEST_CASE("Descriptions are quoted for the shells", "[cli]") {
  CompletionCommand root;
  root.name = "grove";
  CompletionCommand sub;
  sub.name = "odd";
  sub.description = "it's [odd]: really";
  sub.options.push_back(
      {.names = {"--flag"}, .description = "it's $(touch x)", .takes_value = true, .values = {"a", "b"}});
  root.commands.push_back(sub);
  const std::string zsh = ZshCompletion(root);
  CHECK(absl::StrContains(zsh, "'odd:it'\\''s \\[odd\\]\\: really'"));
  CHECK(absl::StrContains(zsh, "'*--flag=[it'\\''s $(touch x)]:value:(a b)'"));
  // What goes on gets no blank behind it, and its colon is no separator of the specification.
  root.commands[0].options.push_back(
      {.names = {"--kind"}, .description = "kind", .takes_value = true, .values = {"one", "from:", "size="}});
  root.commands[0].options.push_back({.names = {"--count"}, .description = "count", .takes_value = true});
  const std::string more = ZshCompletion(root);
  CHECK(absl::StrContains(more, R"('*--kind=[kind]:value:{compadd -- one; compadd -S "" -- from\: size=}')"));
  CHECK(absl::StrContains(more, "'*--count=[count]:value: '"));
  const std::string bash = BashCompletion(root);
  CHECK(absl::StrContains(bash, "'odd|--flag') words='a b' ;;"));
  CHECK(absl::StrContains(bash, "complete -F _grove grove"));
}

}  // namespace
}  // namespace grove::cli
