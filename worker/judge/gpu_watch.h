// The GPU's clocks, temperature, power and throttle reasons while kernels are timed, by NVML, which is loaded at run
// time. A thread of its own asks; an NVML that hangs leaves that thread behind and costs nothing else.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace grove::judge {

class GpuWatch {
 public:
  using Clock = std::chrono::steady_clock;
  struct Reading {
    Clock::time_point at;
    double sm_mhz = 0, memory_mhz = 0, celsius = 0, watts = 0;  // 0 where the driver does not say
    unsigned long long reasons = 0;                             // NVML's bits
  };

  // Reads the GPU with this UUID about every `period` until it is destroyed. Never throws.
  GpuWatch(const std::string& uuid, std::chrono::milliseconds period);
  ~GpuWatch();  // waits half a second for the thread at most
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;

  std::vector<Reading> Take();  // since the last call, oldest first; at most some thousand
  // Why no readings come, or no more: no NVML, an error, or no answer for a second. Empty where all is well.
  std::string Unavailable() const;

  // The clocks are lower than the kernel's doing: hardware or thermal slowdown, power brake. A software power cap is
  // the kernel's own doing, and is recorded alone.
  static bool Slowed(unsigned long long reasons);
  static std::vector<std::string> Names(unsigned long long reasons);  // NVML's, but for "idle"

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the thread, which may outlive this by any time
};

}  // namespace grove::judge
