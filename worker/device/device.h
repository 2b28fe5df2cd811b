// Which device this worker has.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "grove/v1/types.pb.h"

namespace grove::device {

// Fills in name, arch, uuid, memory, L2 (CPU) and driver of the device that `asked` names by kind and index; an
// unspecified kind is the first CUDA device where there is one, else the CPU. NOT_FOUND says which devices there are.
absl::StatusOr<v1::DeviceInfo> Detect(const v1::DeviceInfo& asked);

v1::DeviceInfo DescribeCpu();

// The device nodes that a CUDA program needs for this GPU, those that exist: the control node, unified memory, and
// /dev/nvidia<minor>.
std::vector<std::string> CudaNodes(const v1::DeviceInfo& device);

// "cpu" or "cuda:N", as judge and candidate take it. In a sandbox only one GPU is visible, so N is 0.
std::string DeviceArgument(const v1::DeviceInfo& device);

}  // namespace grove::device
