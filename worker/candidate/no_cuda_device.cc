#include "worker/candidate/device.h"

namespace grove::candidate {

std::unique_ptr<Device> MakeCudaDevice(int, std::string* error) {
  *error = "this grove-candidate was built without CUDA; build it where nvcc is (grove-worker setup)";
  return nullptr;
}

}  // namespace grove::candidate
