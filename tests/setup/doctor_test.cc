#include "worker/setup/doctor.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/temp_dir.h"

namespace grove::worker {
namespace {

using nlohmann::json;

DoctorOptions OnCpu() {
  DoctorOptions options;
  options.paths.libexec_dir = GROVE_LIBEXEC;
  options.paths.include_dir = GROVE_INCLUDE;
  options.device.set_kind(v1::DEVICE_KIND_CPU);
  options.json = true;
  return options;
}

struct Answer {
  absl::Status status;
  json document;
  json operator[](const std::string& name) const {
    for (const json& finding : document["findings"]) {
      if (finding["name"] == name) return finding;
    }
    return json::object();
  }
};

Answer Ask(const DoctorOptions& options) {
  std::ostringstream out;
  Answer answer;
  answer.status = RunDoctor(options, out);
  answer.document = json::parse(out.str(), nullptr, false);
  REQUIRE(answer.document.is_object());
  return answer;
}

TEST_CASE("A machine that has all it needs is ready, and every layer was tried", "[doctor]") {
  const Answer answer = Ask(OnCpu());
  INFO(answer.document.dump(1));
  CHECK(answer.status.ok());
  CHECK(answer.document["ready"] == true);
  for (const char* name :
       {"device", "g++", "grove-judge", "libgrove-judge.so", "libgrove-judge-python.so", "grove-candidate", "run",
        "namespaces", "filesystem", "network", "seccomp", "memory", "processes", "disk", "canary", "build"}) {
    CAPTURE(name);
    CHECK(answer[name].value("state", "") == "ok");
    CHECK(answer[name].value("detail", "") != "");
  }
  // A slow one will do, and is named.
  CHECK(answer["blas"].value("state", "missing") != "missing");
  CHECK(answer["blas"].value("detail", "") != "");
  // A freezer is not everywhere; whether there is one is said.
  CHECK(answer["hold"].value("state", "") != "missing");
  CHECK(answer["hold"].value("detail", "") != "");
}

TEST_CASE("What is missing is named with the remedy, all at once", "[doctor]") {
  testing::TempDir empty;
  DoctorOptions options = OnCpu();
  options.paths.libexec_dir = empty.path();
  options.cxx = "/nonexistent/g++";
  options.nvcc = "/nonexistent/nvcc";
  options.python = "/nonexistent/python3";
  setenv("GROVE_RUNTIME", empty.path().c_str(), 1);
  const Answer answer = Ask(options);
  unsetenv("GROVE_RUNTIME");
  INFO(answer.document.dump(1));
  CHECK(answer.status.code() == absl::StatusCode::kFailedPrecondition);
  CHECK(answer.document["ready"] == false);
  CHECK(answer["g++"].value("state", "") == "missing");
  CHECK_THAT(answer["g++"].value("detail", ""), Catch::Contains("/nonexistent/g++"));
  CHECK(answer["nvcc"].value("state", "") == "absent");  // a CPU worker needs none
  CHECK(answer["python"].value("state", "") == "absent");
  CHECK_THAT(answer["python"].value("detail", ""), Catch::Contains(".py problems"));
  CHECK(answer["grove-candidate"].value("state", "") == "missing");
  CHECK_THAT(answer["grove-candidate"].value("detail", ""), Catch::Contains("grove-worker setup"));
  for (const char* name : {"g++", "grove-judge", "grove-candidate", "grove-sandbox-probe"}) {
    CHECK_THAT(std::string(answer.status.message()), Catch::Contains(name));
  }
}

TEST_CASE("A judge without its libraries is missed before a problem is loaded", "[doctor]") {
  testing::TempDir folder;
  const std::string judge = folder.path() + "/grove-judge";
  std::ofstream(judge) << "#!/bin/sh\n";
  std::filesystem::permissions(judge, std::filesystem::perms::all);
  DoctorOptions options = OnCpu();
  options.paths.libexec_dir = folder.path();
  setenv("GROVE_RUNTIME", folder.path().c_str(), 1);
  const Answer answer = Ask(options);
  unsetenv("GROVE_RUNTIME");
  CHECK_FALSE(answer.status.ok());
  CHECK(answer["grove-judge"].value("state", "") == "ok");
  for (const char* library : {"libgrove-judge.so", "libgrove-judge-python.so"}) {
    CHECK(answer[library].value("state", "") == "missing");
    CHECK_THAT(answer[library].value("detail", ""), Catch::Contains(judge));
  }
}

TEST_CASE("A GPU that was asked for and is not there is missing, and the CPU is offered", "[doctor]") {
  setenv("GROVE_NVML_LIBRARY", "/nonexistent/libnvidia-ml.so.1", 1);
  DoctorOptions options = OnCpu();
  options.device.set_kind(v1::DEVICE_KIND_CUDA);
  options.python = "/nonexistent/python3";
  const Answer answer = Ask(options);
  unsetenv("GROVE_NVML_LIBRARY");
  CHECK_FALSE(answer.status.ok());
  CHECK(answer["device"].value("state", "") == "missing");
  CHECK_THAT(answer["device"].value("detail", ""), Catch::Contains("--device cpu works here"));
}

}  // namespace
}  // namespace grove::worker
