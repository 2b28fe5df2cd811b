#include "worker/sandbox/limits.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

namespace grove::sandbox {
namespace {

TEST_CASE("Every limit has a default", "[limits]") {
  for (v1::DeviceKind device : {v1::DEVICE_KIND_CPU, v1::DEVICE_KIND_CUDA}) {
    const v1::Limits l = DefaultLimits(device);
    CHECK(l.build_wall_seconds() > 0);
    CHECK(l.build_cpu_seconds() > 0);
    CHECK(l.build_memory_bytes() > 0);
    CHECK(l.build_output_bytes() > 0);
    CHECK(l.run_wall_seconds() > 0);
    CHECK(l.run_cpu_seconds() >= l.run_wall_seconds());
    CHECK(l.call_wall_seconds() > 0);
    CHECK(l.call_wall_seconds() < l.run_wall_seconds());
    CHECK(l.memory_bytes() >= int64_t{1} << 30);
    CHECK(l.processes() > 0);
    CHECK(l.disk_bytes() > 0);
    CHECK(l.output_bytes() > 0);
  }
}

TEST_CASE("A request beats the operator's limit, which beats the default", "[limits]") {
  v1::Limits asked, operators;
  operators.set_run_wall_seconds(20);
  operators.set_processes(50);
  asked.set_run_wall_seconds(7);
  const v1::Limits l = FillLimits(asked, operators, v1::DEVICE_KIND_CPU);
  CHECK(l.run_wall_seconds() == 7);
  CHECK(l.processes() == 50);
  CHECK(l.disk_bytes() == kDiskBytes);
}

TEST_CASE("Nonsense and greed in a request are cut", "[limits]") {
  v1::Limits asked;
  asked.set_run_wall_seconds(std::numeric_limits<double>::quiet_NaN());
  asked.set_build_wall_seconds(std::numeric_limits<double>::infinity());
  asked.set_memory_bytes(std::numeric_limits<int64_t>::max());
  asked.set_processes(-5);
  asked.set_disk_bytes(std::numeric_limits<int64_t>::max());
  asked.set_output_bytes(-1);
  const v1::Limits l = FillLimits(asked, {}, v1::DEVICE_KIND_CPU);
  CHECK(l.run_wall_seconds() == kRunWallSeconds);
  CHECK(l.build_wall_seconds() == kMaxWallSeconds);
  CHECK(l.memory_bytes() < MachineMemoryBytes());
  CHECK(l.processes() == DefaultLimits(v1::DEVICE_KIND_CPU).processes());
  CHECK(l.disk_bytes() == kMaxDiskBytes);
  CHECK(l.output_bytes() == kOutputBytes);
}

TEST_CASE("A candidate may hold half of a GPU, what it asks for, and never more than there is", "[limits]") {
  constexpr int64_t kGpu = int64_t{24} << 30;
  v1::Limits asked, operators;
  CHECK(FillLimits({}, {}, v1::DEVICE_KIND_CUDA, kGpu).device_memory_bytes() == kGpu / 2);
  asked.set_device_memory_bytes(int64_t{4} << 30);
  CHECK(FillLimits(asked, {}, v1::DEVICE_KIND_CUDA, kGpu).device_memory_bytes() == int64_t{4} << 30);
  asked.set_device_memory_bytes(int64_t{1} << 50);
  CHECK(FillLimits(asked, {}, v1::DEVICE_KIND_CUDA, kGpu).device_memory_bytes() == kGpu);
  operators.set_device_memory_bytes(int64_t{2} << 30);
  CHECK(FillLimits({}, operators, v1::DEVICE_KIND_CUDA, kGpu).device_memory_bytes() == int64_t{2} << 30);
  CHECK(FillLimits({}, {}, v1::DEVICE_KIND_CPU).device_memory_bytes() == 0);
}

TEST_CASE("Python candidates get longer to build, unless a limit was asked for", "[limits]") {
  const v1::Limits filled = FillLimits({}, {}, v1::DEVICE_KIND_CPU);
  CHECK(BuildLimits(filled, v1::CANDIDATE_FORMAT_CPP).build_wall_seconds() == kBuildWallSeconds);
  const v1::Limits python = BuildLimits(filled, v1::CANDIDATE_FORMAT_KERNELBENCH);
  CHECK(python.build_wall_seconds() == kBuildWallSeconds * kPythonBuildFactor);
  CHECK(python.build_cpu_seconds() == kBuildCpuSeconds * kPythonBuildFactor);
  CHECK(python.run_wall_seconds() == filled.run_wall_seconds());
  v1::Limits asked;
  asked.set_build_wall_seconds(7);
  CHECK(
      BuildLimits(FillLimits(asked, {}, v1::DEVICE_KIND_CPU), v1::CANDIDATE_FORMAT_KERNELBENCH).build_wall_seconds() ==
      7);
}

}  // namespace
}  // namespace grove::sandbox
