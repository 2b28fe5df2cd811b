// Setup against sources of a few lines, so that what is tested is setup and not the judge's build of some minutes.
#include "worker/setup/setup.h"

#include <sys/mount.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/base/files.h"
#include "common/base/version.h"
#include "tests/support/temp_dir.h"
#include "worker/pipeline/programs.h"

namespace grove::worker {
namespace {

namespace fs = std::filesystem;

void Write(const std::string& path, const std::string& text) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

std::string Text(const std::string& path) {
  const auto text = ReadFile(path, 1 << 20);
  return text.ok() ? *text : "";
}

// A source tree in which `judge` is the text of the judge's only file; without the libraries where `libraries` is
// false.
void MakeSources(const std::string& folder, const std::string& judge, bool libraries = true) {
  Write(folder + "/worker/judge/judge.cc", judge);
  Write(folder + "/worker/candidate/candidate.cc", "int main() { return 0; }\n");
  Write(folder + "/worker/judge/library.cc", "int grove_judge_main() { return 0; }\n");
  Write(folder + "/CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.16)\nproject(small CXX)\n"
        "add_executable(grove-judge worker/judge/judge.cc)\n"
        "add_executable(grove-candidate worker/candidate/candidate.cc)\n"
        "install(TARGETS grove-judge grove-candidate DESTINATION libexec/grove)\n" +
            std::string(libraries ? "foreach(name grove-judge grove-judge-python)\n"
                                    "  add_library(${name}-library SHARED worker/judge/library.cc)\n"
                                    "  set_target_properties(${name}-library PROPERTIES OUTPUT_NAME ${name})\n"
                                    "  install(TARGETS ${name}-library DESTINATION libexec/grove)\n"
                                    "endforeach()\n"
                                  : ""));
}

SetupOptions Options(const std::string& sources, const std::string& output) {
  SetupOptions options;
  options.source_dir = sources;
  options.output_dir = output;
  options.cuda = "off";
  options.jobs = 1;
  return options;
}

TEST_CASE("Setup builds judge and candidate, stamps them, and leaves nothing else", "[setup]") {
  testing::TempDir folder;
  const std::string sources = folder.path() + "/src", output = folder.path() + "/out";
  MakeSources(sources, "int main() { return 0; }\n");
  std::ostringstream out;
  const absl::Status status = RunSetup(Options(sources, output), out);
  INFO(status << "\n" << out.str());
  if (!status.ok() && std::string(status.message()).find("Python.h") != std::string::npos) {
    WARN("skipped: the headers of Python are not installed");
    return;
  }
  REQUIRE(status.ok());
  CHECK(fs::exists(output + "/libexec/grove/grove-judge"));
  CHECK(fs::exists(output + "/libexec/grove/grove-candidate"));
  CHECK(Text(output + "/libexec/grove/" + kSetupStamp) == kVersion);
  CHECK_FALSE(fs::exists(output + "/setup-build"));
  CHECK_FALSE(fs::exists(output + "/setup-staged"));
  CHECK_THAT(out.str(), Catch::Contains("done      " + output));

  SECTION("and a later one that does not build leaves it as it was, and says what the compiler said") {
    MakeSources(sources, "int main() { return no_such_name; }\n");
    std::ostringstream again;
    const absl::Status failed = RunSetup(Options(sources, output), again);
    CHECK(failed.code() == absl::StatusCode::kFailedPrecondition);
    CHECK_THAT(std::string(failed.message()), Catch::Contains("building failed") && Catch::Contains("no_such_name"));
    CHECK(fs::exists(output + "/libexec/grove/grove-judge"));
    CHECK(Text(output + "/libexec/grove/" + kSetupStamp) == kVersion);
  }
  SECTION("nor does one that leaves the judge without its libraries") {
    MakeSources(sources, "int main() { return 0; }\n", /*libraries=*/false);
    std::ostringstream again;
    const absl::Status failed = RunSetup(Options(sources, output), again);
    CHECK_THAT(std::string(failed.message()), Catch::Contains("libgrove-judge.so"));
    CHECK(fs::exists(output + "/libexec/grove/libgrove-judge.so"));
  }
}

TEST_CASE("Setup names everything that is missing at once", "[setup]") {
  testing::TempDir folder;
  SetupOptions options = Options(folder.path() + "/nowhere", folder.path() + "/out");
  options.cxx = "/nonexistent/g++";
  options.python = "/nonexistent/python3";
  options.nvcc = "/nonexistent/nvcc";
  options.cuda = "on";
  std::ostringstream out;
  const absl::Status status = RunSetup(options, out);
  CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
  const std::string message(status.message());
  CHECK_THAT(message, Catch::Contains(folder.path() + "/nowhere") && Catch::Contains("--source-dir"));
  CHECK_THAT(message, Catch::Contains("/nonexistent/g++"));
  CHECK_THAT(message, Catch::Contains("/nonexistent/python3"));
  CHECK_THAT(message, Catch::Contains("/nonexistent/nvcc"));
  CHECK_FALSE(fs::exists(folder.path() + "/out"));
}

TEST_CASE("A Python without torch is said, with what to install", "[setup]") {
  testing::TempDir folder;
  MakeSources(folder.path() + "/src", "int main() { return 0; }\n");
  // An interpreter that sees no packages.
  Write(folder.path() + "/python3", "#!/bin/sh\nexec /usr/bin/python3 -S -E \"$@\"\n");
  fs::permissions(folder.path() + "/python3", fs::perms::all);
  SetupOptions options = Options(folder.path() + "/src", folder.path() + "/out");
  options.python = folder.path() + "/python3";
  std::ostringstream out;
  const absl::Status status = RunSetup(options, out);
  CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
  CHECK_THAT(std::string(status.message()), Catch::Contains("torch"));
}

TEST_CASE("Of two setups in one folder the second says that the first is at work, and harms nothing", "[setup]") {
  testing::TempDir folder;
  MakeSources(folder.path() + "/src", "int main() { return 0; }\n");
  const std::string output = folder.path() + "/out";
  Write(output + "/setup-build/half", "of the first");
  const auto first = FileLock::Acquire(output + "/setup.lock");
  REQUIRE(first.ok());
  std::ostringstream out;
  const absl::Status second = RunSetup(Options(folder.path() + "/src", output), out);
  CHECK(second.code() == absl::StatusCode::kFailedPrecondition);
  CHECK_THAT(std::string(second.message()), Catch::Contains("another grove-worker setup") && Catch::Contains(output));
  CHECK(Text(output + "/setup-build/half") == "of the first");
}

TEST_CASE("Setup on a disk without room says so and keeps what is there", "[setup]") {
  testing::TempDir folder;
  MakeSources(folder.path() + "/src", "int main() { return 0; }\n");
  const std::string output = folder.path() + "/out";
  fs::create_directories(output);
  if (mount("tmpfs", output.c_str(), "tmpfs", 0, "size=64k") != 0) {
    WARN("skipped: no file system can be mounted here");
    return;
  }
  Write(output + "/libexec/grove/grove-judge", "the old one");
  std::ostringstream out;
  const absl::Status status = RunSetup(Options(folder.path() + "/src", output), out);
  const std::string old = Text(output + "/libexec/grove/grove-judge");
  umount2(output.c_str(), MNT_DETACH);
  INFO(status);
  CHECK_FALSE(status.ok());
  CHECK_THAT(std::string(status.message()), Catch::Contains("no room in " + output) && Catch::Contains("--output-dir"));
  CHECK(old == "the old one");
}

}  // namespace
}  // namespace grove::worker
