// Nsight Compute of this machine: where it is, and which version.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace grove::device {

struct Ncu {
  std::string path;                  // absolute, the command that runs it
  std::string version;               // "2025.3.1.0"
  std::vector<std::string> folders;  // outside of /usr that it reads
};

// `name` is a path or a name on PATH. Empty: PATH, then the newest /opt/nvidia/nsight-compute/*/ncu, then
// $CUDA_HOME/bin/ncu and /usr/local/cuda/bin/ncu. The first that says its version.
// NOT_FOUND says what to install or which flag to give.
absl::StatusOr<Ncu> FindNcu(const std::string& name);

// Of versions such as "2025.3.1": by their numbers, not by their letters.
bool OlderVersion(const std::string& one, const std::string& other);

// In words, where the driver lets administrators alone read the counters (/proc/driver/nvidia/params,
// RmProfilingAdminOnly): a sandboxed program is none, whoever started it. Empty where they may be read.
std::string CountersRefused();

}  // namespace grove::device
