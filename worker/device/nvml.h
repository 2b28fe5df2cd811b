// What NVIDIA's management library says of the GPUs, without CUDA and without ever waiting for it: the library is
// loaded at run time, and a call that does not return (it happens after some GPU faults) costs its time limit and no
// more.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace grove::device {

struct GpuInfo {
  int index = 0;
  int minor = 0;  // N of /dev/nvidiaN
  std::string name, uuid, driver;
  std::string arch;  // "sm_90"
  int64_t memory_bytes = 0;
};

// NOT_FOUND: no driver library or no GPU on this machine. DEADLINE_EXCEEDED: NVML did not answer in time; until that
// call has returned, further ones end so too. UNAVAILABLE: NVML answered with an error.
absl::StatusOr<std::vector<GpuInfo>> QueryGpus(absl::Duration timeout = absl::Seconds(10));

// The PIDs of those that have a compute or graphics context on this GPU, or use it through MPS; some may be there more
// than once. Errors as above.
absl::StatusOr<std::vector<int>> QueryProcesses(const std::string& gpu_uuid,
                                                absl::Duration timeout = absl::Milliseconds(500));

}  // namespace grove::device
