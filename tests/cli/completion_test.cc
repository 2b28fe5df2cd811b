// The completion script in a real bash.
#include <catch2/catch.hpp>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "tests/cli/run_program.h"

namespace grove::cli {
namespace {

// What bash proposes for the last of `words`, in order, separated by spaces.
std::string Complete(const std::vector<std::string>& words) {
  std::string quoted;
  for (const std::string& word : words) absl::StrAppend(&quoted, " '", word, "'");
  const std::string script =
      absl::StrCat("cd /usr/share; source <(", GROVE_PROGRAM, " completion bash); COMP_WORDS=(", quoted,
                   "); COMP_CWORD=", words.size() - 1, "; _grove; echo \"${COMPREPLY[*]}\"");
  const ProgramResult result = RunProgram({"/bin/bash", "-c", script}, {{"PATH", "/usr/bin:/bin"}, {"HOME", "/"}});
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.err.empty());
  return std::string(absl::StripSuffix(result.out, "\n"));
}

TEST_CASE("bash completes commands, options and values from the parser's own tree", "[completion]") {
  CHECK(Complete({"grove", "se"}) == "search");
  CHECK(Complete({"grove", "jo"}) == "jobs job");
  CHECK(Complete({"grove", "bank", ""}) == "list show add remove");
  CHECK(Complete({"grove", "bank", "re"}) == "remove");
  CHECK(Complete({"grove", "certs", "i"}) == "init issue");
  CHECK(Complete({"grove", "search", "--rou"}) == "--rounds");
  CHECK(Complete({"grove", "search", "x.py", "--no-"}) == "--no-bank --no-color");
  CHECK(Complete({"grove", "eval", "--baseline", ""}) == "eager compile all");
  CHECK(Complete({"grove", "eval", "--baseline", "=", "c"}) == "compile");
  CHECK(Complete({"grove", "eval", "--wo"}) == "--work");
  CHECK(Complete({"grove", "compare", "--work", ""}) == "anything libraries own_kernels");
  CHECK(Complete({"grove", "search", "--work", "own"}) == "own_kernels");
  CHECK(Complete({"grove", "eval", "--reu"}) == "--reuse");
  CHECK(Complete({"grove", "--json", "tree", "j-x", "--format", "d"}) == "dot");
  CHECK(Complete({"grove", "eval", "--limit", "run_"}) == "run_wall_seconds= run_cpu_seconds=");
  CHECK(Complete({"grove", "completion", ""}) == "bash zsh");
  CHECK(Complete({"grove", "search", "--rounds", ""}).empty());
}

TEST_CASE("bash completes file names where files go", "[completion]") {
  CHECK(absl::StrContains(Complete({"grove", "eval", "zonein"}), "zoneinfo") ==
        absl::StrContains(RunProgram({"/bin/ls", "/usr/share"}, {}).out, "zoneinfo"));
  CHECK(absl::StrContains(Complete({"grove", "best", "j-x", "-o", "do"}), "doc"));
}

TEST_CASE("Both scripts are syntactically right", "[completion]") {
  const ProgramResult bash = RunProgram(
      {"/bin/bash", "-c", absl::StrCat("bash -n <(", GROVE_PROGRAM, " completion bash)")}, {{"PATH", "/usr/bin:/bin"}});
  CHECK(bash.exit_code == 0);
  CHECK(bash.err.empty());
  if (!std::filesystem::exists("/usr/bin/zsh")) {
    WARN("there is no zsh here: its script is not looked at");
    return;
  }
  const ProgramResult zsh =
      RunProgram({"/bin/bash", "-c", absl::StrCat("/usr/bin/zsh -n <(", GROVE_PROGRAM, " completion zsh)")},
                 {{"PATH", "/usr/bin:/bin"}});
  CHECK(zsh.exit_code == 0);
  CHECK(zsh.err.empty());
}

}  // namespace
}  // namespace grove::cli
