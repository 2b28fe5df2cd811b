#include "worker/device/nvml.h"

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "worker/device/nvml_library.h"

namespace grove::device {
namespace {

struct Memory {
  unsigned long long total, free, used;
};

absl::StatusOr<std::vector<GpuInfo>> QueryNow() {
  const NvmlLibrary library;
  if (!library.ok()) {
    return absl::NotFoundError(absl::StrCat("no NVIDIA driver here (", library.path(), " cannot be loaded)"));
  }
  const auto init = library.Find<int (*)()>("nvmlInit_v2");
  const auto shutdown = library.Find<int (*)()>("nvmlShutdown");
  const auto count_of = library.Find<int (*)(unsigned*)>("nvmlDeviceGetCount_v2");
  const auto by_index = library.Find<int (*)(unsigned, NvmlDevice*)>("nvmlDeviceGetHandleByIndex_v2");
  const auto name_of = library.Find<int (*)(NvmlDevice, char*, unsigned)>("nvmlDeviceGetName");
  const auto uuid_of = library.Find<int (*)(NvmlDevice, char*, unsigned)>("nvmlDeviceGetUUID");
  const auto memory_of = library.Find<int (*)(NvmlDevice, Memory*)>("nvmlDeviceGetMemoryInfo");
  const auto minor_of = library.Find<int (*)(NvmlDevice, unsigned*)>("nvmlDeviceGetMinorNumber");
  const auto capability_of = library.Find<int (*)(NvmlDevice, int*, int*)>("nvmlDeviceGetCudaComputeCapability");
  const auto driver_version = library.Find<int (*)(char*, unsigned)>("nvmlSystemGetDriverVersion");
  if (!init || !shutdown || !count_of || !by_index || !name_of || !uuid_of || !memory_of || !minor_of ||
      !capability_of || !driver_version) {
    return absl::UnavailableError("this NVML lacks functions that are needed; update the NVIDIA driver");
  }
  const auto error = [&](const char* what, int code) { return library.Error(what, code); };
  if (int code = init(); code != 0) return error("nvmlInit", code);
  struct Finally {
    int (*shutdown)();
    ~Finally() { shutdown(); }
  } finally{shutdown};
  char driver[96] = "";
  driver_version(driver, sizeof(driver));
  unsigned count = 0;
  if (int code = count_of(&count); code != 0) return error("nvmlDeviceGetCount", code);
  std::vector<GpuInfo> gpus;
  for (unsigned i = 0; i < count && i < 64; ++i) {
    NvmlDevice device = nullptr;
    if (int code = by_index(i, &device); code != 0) return error("nvmlDeviceGetHandleByIndex", code);
    char name[128] = "", uuid[128] = "";
    int major = 0, minor_capability = 0;
    unsigned minor = i;
    Memory memory{};
    if (int code = name_of(device, name, sizeof(name)); code != 0) return error("nvmlDeviceGetName", code);
    uuid_of(device, uuid, sizeof(uuid));
    minor_of(device, &minor);
    memory_of(device, &memory);
    if (int code = capability_of(device, &major, &minor_capability); code != 0) {
      return error("nvmlDeviceGetCudaComputeCapability", code);
    }
    GpuInfo gpu;
    gpu.index = static_cast<int>(i);
    gpu.minor = static_cast<int>(minor);
    gpu.name = name;
    gpu.uuid = uuid;
    gpu.driver = driver;
    gpu.arch = absl::StrCat("sm_", major, minor_capability);
    gpu.memory_bytes = static_cast<int64_t>(memory.total);
    gpus.push_back(std::move(gpu));
  }
  if (gpus.empty()) return absl::NotFoundError("the NVIDIA driver is here but names no GPU");
  return gpus;
}

// nvmlProcessInfo_t, as the functions of the versions 2 and 3 have it.
struct ProcessInfo {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};

absl::StatusOr<std::vector<int>> ProcessesNow(const std::string& gpu_uuid) {
  const NvmlLibrary library;
  if (!library.ok()) return absl::NotFoundError(absl::StrCat(library.path(), " cannot be loaded"));
  const auto init = library.Find<int (*)()>("nvmlInit_v2");
  const auto shutdown = library.Find<int (*)()>("nvmlShutdown");
  const auto by_uuid = library.Find<int (*)(const char*, NvmlDevice*)>("nvmlDeviceGetHandleByUUID");
  using List = int (*)(NvmlDevice, unsigned*, ProcessInfo*);
  std::vector<List> lists;
  for (const char* kind : {"Compute", "Graphics", "MPSCompute"}) {
    const std::string name = absl::StrCat("nvmlDeviceGet", kind, "RunningProcesses_v");
    List list = library.Find<List>(absl::StrCat(name, 3).c_str());
    if (list == nullptr) list = library.Find<List>(absl::StrCat(name, 2).c_str());
    if (list != nullptr) lists.push_back(list);
  }
  if (!init || !shutdown || !by_uuid || lists.empty()) {
    return absl::UnavailableError("this NVML lists no processes; update the NVIDIA driver");
  }
  if (int code = init(); code != kNvmlOk) return library.Error("nvmlInit", code);
  NvmlDevice device = nullptr;
  int code = by_uuid(gpu_uuid.c_str(), &device);
  std::vector<int> pids;
  for (size_t i = 0; code == kNvmlOk && i < lists.size(); ++i) {
    std::vector<ProcessInfo> infos(1024);  // the driver keeps no more
    unsigned count = static_cast<unsigned>(infos.size());
    code = lists[i](device, &count, infos.data());
    if (code == kNvmlNotSupported) {
      code = kNvmlOk;
    } else if (code == kNvmlOk) {
      for (unsigned p = 0; p < count; ++p) pids.push_back(static_cast<int>(infos[p].pid));
    }
  }
  shutdown();
  if (code != kNvmlOk) return library.Error("listing processes", code);
  return pids;
}

template <typename Answer>
struct Call {
  std::mutex mutex;
  std::condition_variable done;
  std::optional<absl::StatusOr<Answer>> answer;
};

// One call at a time. Who comes meanwhile waits for the earlier one, within its own time.
struct Turn {
  std::mutex mutex;
  std::condition_variable free;
  bool taken = false;
};
Turn* TheTurn() {
  static Turn* turn = new Turn;  // a call that never returns may outlive everything
  return turn;
}

template <typename Answer>
absl::StatusOr<Answer> Within(absl::Duration timeout, std::function<absl::StatusOr<Answer>()> query) {
  Turn* const turn = TheTurn();
  const absl::Time deadline = absl::Now() + timeout;
  {
    std::unique_lock<std::mutex> lock(turn->mutex);
    if (!turn->free.wait_for(lock, absl::ToChronoNanoseconds(timeout), [turn] { return !turn->taken; })) {
      return absl::DeadlineExceededError("an earlier NVML call has not returned; the driver hangs");
    }
    turn->taken = true;
  }
  // Shared with the thread, which may outlive this call by any time.
  auto call = std::make_shared<Call<Answer>>();
  std::thread([call, turn, query = std::move(query)] {
    auto answer = query();
    {
      std::lock_guard<std::mutex> lock(call->mutex);
      call->answer = std::move(answer);
    }
    call->done.notify_all();
    std::lock_guard<std::mutex> lock(turn->mutex);
    turn->taken = false;
    turn->free.notify_one();
  }).detach();
  std::unique_lock<std::mutex> lock(call->mutex);
  if (!call->done.wait_for(lock, absl::ToChronoNanoseconds(std::max(deadline - absl::Now(), absl::Milliseconds(1))),
                           [&] { return call->answer.has_value(); })) {
    return absl::DeadlineExceededError(
        absl::StrCat("NVML did not answer within ", absl::FormatDuration(timeout), "; the driver hangs"));
  }
  return *call->answer;
}

}  // namespace

absl::StatusOr<std::vector<GpuInfo>> QueryGpus(absl::Duration timeout) {
  return Within<std::vector<GpuInfo>>(timeout, QueryNow);
}

absl::StatusOr<std::vector<int>> QueryProcesses(const std::string& gpu_uuid, absl::Duration timeout) {
  return Within<std::vector<int>>(timeout, [gpu_uuid] { return ProcessesNow(gpu_uuid); });
}

}  // namespace grove::device
