#include "worker/sandbox/limits.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

namespace grove::sandbox {
namespace {

template <typename T>
T Pick(T asked, T operators, T fallback, T bound) {
  // The comparisons are false for NaN.
  T value = asked > 0 ? asked : (operators > 0 ? operators : fallback);
  // An operator may go beyond the bounds; a request may not.
  const T cap = operators > 0 ? std::max(bound, operators) : bound;
  return value > cap ? cap : value;
}

// Cores granted by a quota of the cgroup in which we run, or 0.
double QuotaCores() {
  std::ifstream max("/sys/fs/cgroup/cpu.max");  // v2, as seen from inside a container
  std::string quota;
  double period = 0;
  if (max >> quota >> period && quota != "max" && period > 0) return std::strtod(quota.c_str(), nullptr) / period;
  std::ifstream v1_quota("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), v1_period("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  double q = 0, p = 0;
  if (v1_quota >> q && v1_period >> p && q > 0 && p > 0) return q / p;
  return 0;
}

}  // namespace

int UsableThreads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int threads = 1;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    threads = CPU_COUNT(&set);
  } else {
    threads = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  }
  const double quota = QuotaCores();
  if (quota > 0) threads = std::min(threads, static_cast<int>(std::ceil(quota)));
  return std::max(1, threads);
}

int64_t MachineMemoryBytes() {
  const int64_t physical = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  int64_t limit = physical;
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream file(path);
    int64_t value = 0;
    if (file >> value && value > 0) limit = std::min(limit, value);
  }
  return limit;
}

int64_t DefaultJudgeMemoryBytes() { return std::max<int64_t>(int64_t{1} << 30, MachineMemoryBytes() / 4 * 3); }

v1::Limits DefaultLimits(v1::DeviceKind device) {
  const int threads = UsableThreads();
  v1::Limits l;
  l.set_build_wall_seconds(kBuildWallSeconds);
  l.set_build_cpu_seconds(kBuildCpuSeconds);
  l.set_build_memory_bytes(std::min(kBuildMemoryBytes, std::max<int64_t>(int64_t{1} << 30, MachineMemoryBytes() / 2)));
  l.set_build_output_bytes(kBuildOutputBytes);
  l.set_run_wall_seconds(kRunWallSeconds);
  l.set_run_cpu_seconds(kRunWallSeconds * threads);
  l.set_call_wall_seconds(device == v1::DEVICE_KIND_CUDA ? kCallWallSecondsCuda : kCallWallSecondsCpu);
  l.set_memory_bytes(std::clamp<int64_t>(MachineMemoryBytes() / 2, int64_t{1} << 30, int64_t{16} << 30));
  l.set_device_memory_bytes(0);
  l.set_processes(std::min(kMaxProcesses, kBaseProcesses + kProcessesPerThread * threads));
  l.set_disk_bytes(kDiskBytes);
  l.set_output_bytes(kOutputBytes);
  return l;
}

v1::Limits FillLimits(const v1::Limits& a, const v1::Limits& o, v1::DeviceKind device, int64_t device_bytes) {
  const v1::Limits d = DefaultLimits(device);
  const int threads = UsableThreads();
  const int64_t memory_bound = MachineMemoryBytes() / 8 * 7;
  v1::Limits l;
  l.set_build_wall_seconds(
      Pick(a.build_wall_seconds(), o.build_wall_seconds(), d.build_wall_seconds(), kMaxWallSeconds));
  l.set_build_cpu_seconds(
      Pick(a.build_cpu_seconds(), o.build_cpu_seconds(), d.build_cpu_seconds(), kMaxWallSeconds * threads));
  l.set_build_memory_bytes(Pick(a.build_memory_bytes(), o.build_memory_bytes(), d.build_memory_bytes(), memory_bound));
  l.set_build_output_bytes(Pick(a.build_output_bytes(), o.build_output_bytes(), d.build_output_bytes(), kMaxDiskBytes));
  l.set_run_wall_seconds(Pick(a.run_wall_seconds(), o.run_wall_seconds(), d.run_wall_seconds(), kMaxWallSeconds));
  // A longer wall time brings its CPU time with it unless that was asked for too.
  const double cpu = std::max(d.run_cpu_seconds(), l.run_wall_seconds() * threads);
  l.set_run_cpu_seconds(Pick(a.run_cpu_seconds(), o.run_cpu_seconds(), cpu, kMaxWallSeconds * threads));
  l.set_call_wall_seconds(Pick(a.call_wall_seconds(), o.call_wall_seconds(), d.call_wall_seconds(), kMaxWallSeconds));
  l.set_memory_bytes(Pick(a.memory_bytes(), o.memory_bytes(), d.memory_bytes(), memory_bound));
  // Nothing to bound on a CPU, and nothing to bound by where the size is not known.
  const int64_t half = static_cast<int64_t>(kDeviceMemoryShare * static_cast<double>(device_bytes));
  l.set_device_memory_bytes(
      device_bytes > 0
          ? Pick(a.device_memory_bytes(), o.device_memory_bytes(), half, device_bytes)
          : std::max<int64_t>(0, a.device_memory_bytes() > 0 ? a.device_memory_bytes() : o.device_memory_bytes()));
  l.set_processes(Pick(a.processes(), o.processes(), d.processes(), kMaxProcesses));
  l.set_disk_bytes(Pick(a.disk_bytes(), o.disk_bytes(), d.disk_bytes(), kMaxDiskBytes));
  l.set_output_bytes(Pick(a.output_bytes(), o.output_bytes(), d.output_bytes(), kMaxOutputBytes));
  return l;
}

v1::Limits BuildLimits(const v1::Limits& filled, v1::CandidateFormat format) {
  v1::Limits limits = filled;
  if (format != v1::CANDIDATE_FORMAT_KERNELBENCH) return limits;
  if (limits.build_wall_seconds() == kBuildWallSeconds) {
    limits.set_build_wall_seconds(kBuildWallSeconds * kPythonBuildFactor);
  }
  if (limits.build_cpu_seconds() == kBuildCpuSeconds) {
    limits.set_build_cpu_seconds(kBuildCpuSeconds * kPythonBuildFactor);
  }
  return limits;
}

}  // namespace grove::sandbox
