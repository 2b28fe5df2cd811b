#include "worker/judge/gpu_watch.h"

#include <dlfcn.h>

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

namespace grove::judge {
namespace {

constexpr std::size_t kMaxReadings = 4096;
constexpr std::chrono::milliseconds kSilence{1000};  // an answer takes some milliseconds at most
constexpr std::chrono::milliseconds kFarewell{500};

// nvml.h: nvmlClocksEventReason*.
constexpr std::pair<unsigned long long, const char*> kReasons[] = {{0x2, "applications_clocks_setting"},
                                                                   {0x4, "sw_power_cap"},
                                                                   {0x8, "hw_slowdown"},
                                                                   {0x10, "sync_boost"},
                                                                   {0x20, "sw_thermal_slowdown"},
                                                                   {0x40, "hw_thermal_slowdown"},
                                                                   {0x80, "hw_power_brake_slowdown"},
                                                                   {0x100, "display_clock_setting"}};
constexpr unsigned long long kSlowdowns = 0x8 | 0x20 | 0x40 | 0x80;

// nvml.h: nvmlClockType_t, nvmlTemperatureSensors_t.
constexpr int kSmClock = 1, kMemoryClock = 2, kGpuSensor = 0;
constexpr int kGpuIsLost = 15;  // nvmlReturn_t

using Device = void*;

}  // namespace

struct GpuWatch::State {
  std::mutex mutex;
  std::condition_variable change;
  bool stop = false, ended = false;
  Clock::time_point heard = Clock::now();
  std::string error;
  std::vector<Reading> readings;

  void Fail(std::string what) {
    std::lock_guard<std::mutex> lock(mutex);
    error = std::move(what);
  }

  void Watch(const std::string& uuid, std::chrono::milliseconds period) {
    // The same variable as the worker's, for drivers in unusual places.
    const char* path = std::getenv("GROVE_NVML_LIBRARY");
    void* library = ::dlopen(path != nullptr && *path != 0 ? path : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return Fail("libnvidia-ml.so.1 cannot be loaded");
    auto find = [library](const char* name) { return ::dlsym(library, name); };
    auto init = reinterpret_cast<int (*)()>(find("nvmlInit_v2"));
    auto by_uuid = reinterpret_cast<int (*)(const char*, Device*)>(find("nvmlDeviceGetHandleByUUID"));
    auto clock = reinterpret_cast<int (*)(Device, int, unsigned*)>(find("nvmlDeviceGetClockInfo"));
    auto temperature = reinterpret_cast<int (*)(Device, int, unsigned*)>(find("nvmlDeviceGetTemperature"));
    auto power = reinterpret_cast<int (*)(Device, unsigned*)>(find("nvmlDeviceGetPowerUsage"));
    auto reasons =
        reinterpret_cast<int (*)(Device, unsigned long long*)>(find("nvmlDeviceGetCurrentClocksThrottleReasons"));
    if (reasons == nullptr) {  // its later name
      reasons = reinterpret_cast<decltype(reasons)>(find("nvmlDeviceGetCurrentClocksEventReasons"));
    }
    if (!init || !by_uuid || !clock) return Fail("this NVML lacks functions that are needed; update the NVIDIA driver");
    if (int code = init(); code != 0) return Fail("nvmlInit gave error " + std::to_string(code));
    Device device = nullptr;
    if (int code = by_uuid(uuid.c_str(), &device); code != 0) {
      return Fail("NVML does not know " + uuid + " (error " + std::to_string(code) + ")");
    }
    for (;;) {
      Reading reading;
      reading.at = Clock::now();
      unsigned value = 0;
      const int code = clock(device, kSmClock, &value);
      // A GPU that is lost is no GPU that stands still. What is not to be had otherwise is left out.
      if (code == kGpuIsLost) return Fail("NVML gave error " + std::to_string(code) + " for the clock");
      if (code == 0) reading.sm_mhz = value;
      if (clock(device, kMemoryClock, &value) == 0) reading.memory_mhz = value;
      if (temperature && temperature(device, kGpuSensor, &value) == 0) reading.celsius = value;
      if (power && power(device, &value) == 0) reading.watts = 1e-3 * value;
      if (reasons) reasons(device, &reading.reasons);
      std::unique_lock<std::mutex> lock(mutex);
      heard = Clock::now();
      if (readings.size() < kMaxReadings) readings.push_back(reading);
      if (change.wait_for(lock, period, [this] { return stop; })) return;
      heard = Clock::now();
    }
  }
};

GpuWatch::GpuWatch(const std::string& uuid, std::chrono::milliseconds period) : state_(std::make_shared<State>()) {
  std::thread([state = state_, uuid, period] {
    state->Watch(uuid, period);
    std::lock_guard<std::mutex> lock(state->mutex);
    state->ended = true;
    state->change.notify_all();
  }).detach();
}

GpuWatch::~GpuWatch() {
  std::unique_lock<std::mutex> lock(state_->mutex);
  state_->stop = true;
  state_->change.notify_all();
  state_->change.wait_for(lock, kFarewell, [this] { return state_->ended; });
}

std::vector<GpuWatch::Reading> GpuWatch::Take() {
  std::lock_guard<std::mutex> lock(state_->mutex);
  return std::exchange(state_->readings, {});
}

std::string GpuWatch::Unavailable() const {
  std::lock_guard<std::mutex> lock(state_->mutex);
  if (!state_->error.empty()) return state_->error;
  return Clock::now() - state_->heard > kSilence ? "NVML does not answer" : "";
}

bool GpuWatch::Slowed(unsigned long long reasons) { return (reasons & kSlowdowns) != 0; }

std::vector<std::string> GpuWatch::Names(unsigned long long reasons) {
  std::vector<std::string> names;
  for (const auto& [bit, name] : kReasons) {
    if ((reasons & bit) != 0) names.emplace_back(name);
  }
  return names;
}

}  // namespace grove::judge
