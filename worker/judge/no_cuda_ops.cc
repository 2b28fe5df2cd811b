#include <stdexcept>

#include "worker/judge/compare_gpu.h"
#include "worker/judge/device_ops.h"

namespace grove::judge {

std::unique_ptr<DeviceOps> MakeCudaOps(int) {
  throw std::runtime_error(
      "this grove-judge was built against a PyTorch without CUDA; build it against one that has CUDA (grove-worker "
      "setup)");
}

// Without a device nothing is there to be compared.
Comparison CompareOnGpu(const ComparisonInput&, const Rule&) { throw std::logic_error("no CUDA"); }
std::vector<RowError> RowErrorsOnGpu(const std::vector<ComparedRow>&) { throw std::logic_error("no CUDA"); }

}  // namespace grove::judge
