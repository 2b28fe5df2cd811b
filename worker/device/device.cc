#include "worker/device/device.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "worker/device/nvml.h"
#include "worker/sandbox/limits.h"

namespace grove::device {
namespace {

std::string CpuName() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (!absl::StartsWith(line, "model name")) continue;
    return std::string(absl::StripAsciiWhitespace(line.substr(line.find(':') + 1)));
  }
  return "unknown CPU";
}

// By what the compiler's -march=native would use, which asks the same instruction.
std::string CpuArch() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) return "x86-64/avx512";
  if (__builtin_cpu_supports("avx2")) return "x86-64/avx2";
  if (__builtin_cpu_supports("avx")) return "x86-64/avx";
  return "x86-64";
}

// Size of the largest cache that the first CPU sees.
int64_t LastLevelCacheBytes() {
  int64_t largest = 0;
  for (int index = 0; index < 8; ++index) {
    std::ifstream file(absl::StrCat("/sys/devices/system/cpu/cpu0/cache/index", index, "/size"));
    std::string text;
    if (!(file >> text)) continue;
    int64_t factor = 1;
    if (absl::EndsWith(text, "K")) factor = 1 << 10;
    if (absl::EndsWith(text, "M")) factor = 1 << 20;
    if (factor > 1) text.pop_back();
    int64_t value = 0;
    if (absl::SimpleAtoi(text, &value)) largest = std::max(largest, value * factor);
  }
  return largest;
}

}  // namespace

v1::DeviceInfo DescribeCpu() {
  v1::DeviceInfo info;
  info.set_kind(v1::DEVICE_KIND_CPU);
  info.set_name(CpuName());
  info.set_arch(CpuArch());
  info.set_memory_bytes(sandbox::MachineMemoryBytes());
  info.set_l2_bytes(LastLevelCacheBytes());
  info.set_multiprocessors(sandbox::UsableThreads());
  return info;
}

absl::StatusOr<v1::DeviceInfo> Detect(const v1::DeviceInfo& asked) {
  if (asked.kind() == v1::DEVICE_KIND_CPU) return DescribeCpu();
  auto gpus = QueryGpus();
  if (!gpus.ok()) {
    if (asked.kind() == v1::DEVICE_KIND_UNSPECIFIED && absl::IsNotFound(gpus.status())) return DescribeCpu();
    return absl::Status(gpus.status().code(), absl::StrCat("no CUDA device can be used: ", gpus.status().message(),
                                                           "; --device cpu works here"));
  }
  std::vector<std::string> known;
  for (const GpuInfo& gpu : *gpus) {
    known.push_back(absl::StrCat("cuda:", gpu.index, " ", gpu.name));
    if (gpu.index != asked.index()) continue;
    v1::DeviceInfo info;
    info.set_kind(v1::DEVICE_KIND_CUDA);
    info.set_index(gpu.index);
    info.set_name(gpu.name);
    info.set_arch(gpu.arch);
    info.set_uuid(gpu.uuid);
    info.set_memory_bytes(gpu.memory_bytes);
    info.set_driver(gpu.driver);
    return info;
  }
  return absl::NotFoundError(
      absl::StrCat("there is no device cuda:", asked.index(), "; there are ", absl::StrJoin(known, ", "), ", and cpu"));
}

std::vector<std::string> CudaNodes(const v1::DeviceInfo& device) {
  std::vector<std::string> nodes;
  if (device.kind() != v1::DEVICE_KIND_CUDA) return nodes;
  int minor = device.index();
  if (auto gpus = QueryGpus(); gpus.ok()) {
    for (const GpuInfo& gpu : *gpus) {
      if (gpu.uuid == device.uuid() || (device.uuid().empty() && gpu.index == device.index())) minor = gpu.minor;
    }
  }
  for (const std::string& node : {std::string("/dev/nvidiactl"), std::string("/dev/nvidia-uvm"),
                                  std::string("/dev/nvidia-uvm-tools"), absl::StrCat("/dev/nvidia", minor)}) {
    if (access(node.c_str(), F_OK) == 0) nodes.push_back(node);
  }
  return nodes;
}

std::string DeviceArgument(const v1::DeviceInfo& device) {
  return device.kind() == v1::DEVICE_KIND_CUDA ? "cuda:0" : "cpu";
}

}  // namespace grove::device
