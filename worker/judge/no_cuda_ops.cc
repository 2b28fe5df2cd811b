#include <stdexcept>

#include "worker/judge/device_ops.h"

namespace grove::judge {

std::unique_ptr<DeviceOps> MakeCudaOps(int) {
  throw std::runtime_error(
      "this grove-judge was built against a PyTorch without CUDA; build it against one that has CUDA (grove-worker "
      "setup)");
}

}  // namespace grove::judge
