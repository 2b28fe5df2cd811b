// How much device memory a candidate holds, from the judge's side: what is in use on the device, less what was in use
// before the candidate had anything of its kernel, less what the judge itself has taken since. Looked at before,
// between and after runs; what is taken and given back within one call is not seen. Without NVML's figures per process,
// which a container does not get. And whether others hold so much that a problem does not fit for that reason.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>

#include "worker/judge/device_ops.h"
#include "worker/judge/verdict.h"

namespace grove::judge {

inline std::string MiBText(double bytes) {
  return std::to_string(static_cast<std::int64_t>(bytes / (1 << 20))) + " MiB";
}

// For who finds no memory on the device before a candidate is there: what others hold, in words that a message begins
// with. Empty where that is no more than the same worker's waiting processes may hold (an eighth of the device and some
// contexts, of a device of 24 GiB three tenths; of a small one more), and where the device does not answer.
inline std::string MemoryOfOthers(const DeviceOps& ops) {
  constexpr double kWorkers = 0.3, kEighth = 0.125, kContexts = 2.0 * (1 << 30);
  try {
    const double all = ops.Info().value("memory_bytes", 0.0);
    const auto others = static_cast<double>(ops.others_bytes());
    if (all <= 0 || others <= std::max(kWorkers * all, kEighth * all + kContexts)) return "";
    return "other processes hold " + MiBText(others) + " of the device's " + MiBText(all) + ": ";
  } catch (const std::exception&) {
    return "";
  }
}

class MemoryWatch {
 public:
  // `limit` 0 = watch nothing. Counts from now.
  MemoryWatch(DeviceOps& ops, double limit) : ops_(ops), limit_(limit), before_(limit > 0 ? ops.others_bytes() : 0) {}

  // Throws the Verdict when the candidate holds more than the limit by more than what the driver takes for itself.
  void Look(const std::string& stage) const {
    if (limit_ <= 0) return;
    const double held = Held();
    if (held <= limit_ + kSlackBytes) return;
    throw Verdict{"VERDICT_LIMIT_EXCEEDED",
                  "the candidate holds more device memory than device_memory_bytes allows: " + MiBText(held) + " of " +
                      MiBText(limit_),
                  {{"stage", stage}, {"limit", "device_memory_bytes"}, {"limit_set", limit_}, {"limit_reached", held}}};
  }
  // What others hold beside the candidate from now on is none of its own.
  void LeaveOut(double bytes) { before_ += static_cast<std::int64_t>(bytes); }
  double Held() const { return static_cast<double>(ops_.others_bytes() - before_); }
  double limit() const { return limit_; }
  // Whether the candidate, by what it holds, is the reason that the device is full. Where nothing is watched: it is.
  bool Filled() const { return limit_ <= 0 || Held() >= limit_; }

 private:
  // What is not the candidate's doing: the driver's own for modules, stacks and heaps, and the contexts of the
  // processes that are started ahead meanwhile, some 500 MiB each on an H200.
  static constexpr double kSlackBytes = 2.0 * (1 << 30);

  DeviceOps& ops_;
  double limit_;
  std::int64_t before_;
};

}  // namespace grove::judge
