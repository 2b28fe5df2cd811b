#include "worker/device/ncu.h"

#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tests/support/temp_folder.h"

namespace grove::device {
namespace {

namespace fs = std::filesystem;

std::string Write(const fs::path& path, const std::string& script) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
  REQUIRE(chmod(path.c_str(), 0755) == 0);
  return path.string();
}

constexpr char kSays[] =
    "echo 'NVIDIA (R) Nsight Compute Command Line Profiler'\necho 'Version 2025.3.1.0 (build 36398880) "
    "(public-release)'";

bool Has(const Ncu& ncu, const std::string& folder) {
  return std::find(ncu.folders.begin(), ncu.folders.end(), folder) != ncu.folders.end();
}

TEST_CASE("Versions are compared by their numbers", "[ncu]") {
  CHECK(OlderVersion("2024.3.2", "2025.1.0"));
  CHECK(OlderVersion("2025.9", "2025.10"));
  CHECK(OlderVersion("2025.3", "2025.3.1"));
  CHECK_FALSE(OlderVersion("2025.3.1", "2025.3.1"));
  CHECK(OlderVersion("nonsense", "2020.1"));
}

TEST_CASE("A profiler that is named says its version, and is shown with no more than it needs", "[ncu]") {
  testing::TempFolder folder;
  const fs::path root = fs::canonical(folder.path());
  SECTION("alone in a folder of other things") {
    const std::string path = Write(root / "bin" / "ncu", kSays);
    const auto ncu = FindNcu(path);
    INFO(ncu.status());
    REQUIRE(ncu.ok());
    CHECK(ncu->version == "2025.3.1.0");
    CHECK(ncu->path == path);
    CHECK(Has(*ncu, path));
    CHECK_FALSE(Has(*ncu, root / "bin"));
    CHECK_FALSE(Has(*ncu, root));
    CHECK_FALSE(Has(*ncu, "/tmp"));
  }
  SECTION("an installation, by a link") {
    Write(root / "2025.3.1" / "ncu", kSays);
    fs::create_directories(root / "2025.3.1" / "target");
    fs::create_symlink(root / "2025.3.1" / "ncu", root / "ncu");
    const auto ncu = FindNcu(root / "ncu");
    REQUIRE(ncu.ok());
    CHECK(Has(*ncu, root / "2025.3.1"));
    CHECK_FALSE(Has(*ncu, root));
  }
  SECTION("a toolkit") {
    Write(root / "cuda" / "bin" / "nvcc", "");
    Write(root / "cuda" / "version.json", "{}");
    const auto ncu = FindNcu(Write(root / "cuda" / "bin" / "ncu", kSays));
    REQUIRE(ncu.ok());
    CHECK(Has(*ncu, root / "cuda"));
    CHECK_FALSE(Has(*ncu, root));
  }
  SECTION("a home, with an nvcc among the programs") {
    Write(root / "home" / "bin" / "nvcc", "");
    const auto ncu = FindNcu(Write(root / "home" / "bin" / "ncu", kSays));
    REQUIRE(ncu.ok());
    CHECK_FALSE(Has(*ncu, root / "home"));
  }
}

TEST_CASE("What is no profiler is not taken for one", "[ncu]") {
  testing::TempFolder folder;
  for (const char* script : {"exit 1", "echo hello", "echo 'Version '", "kill -9 $$"}) {
    CAPTURE(script);
    const auto ncu = FindNcu(Write(fs::path(folder.path()) / "ncu", script));
    CHECK(ncu.status().code() == absl::StatusCode::kNotFound);
    CHECK_THAT(std::string(ncu.status().message()), Catch::Contains("--ncu"));
  }
  CHECK_THAT(std::string(FindNcu(folder.path() + "/none").status().message()), Catch::Contains("none is not there"));
}

}  // namespace
}  // namespace grove::device
