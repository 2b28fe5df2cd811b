// The part that needs CUDA's headers: streams, devices, error checks. See grove_torch_lite.h.
#pragma once

#include <cuda_runtime_api.h>

#include "grove_torch_lite.h"

namespace c10 {
namespace cuda {
inline namespace grove_lite {

class CUDAStream {
 public:
  explicit CUDAStream(void* stream) : stream_(static_cast<cudaStream_t>(stream)) {}
  operator cudaStream_t() const { return stream_; }
  cudaStream_t stream() const { return stream_; }
  void synchronize() const { grove_lite_synchronize_stream(stream_); }

 private:
  cudaStream_t stream_;
};
inline CUDAStream getCurrentCUDAStream(c10::DeviceIndex device = -1) {
  return CUDAStream(grove_lite_current_stream(device));
}
inline c10::DeviceIndex current_device() { return static_cast<c10::DeviceIndex>(grove_lite_current_device()); }
inline void set_device(c10::DeviceIndex device) { grove_lite_set_device(device); }

class CUDAGuard {
 public:
  explicit CUDAGuard(c10::DeviceIndex index) : before_(grove_lite_exchange_device(index)) {}
  explicit CUDAGuard(c10::Device device) : before_(grove_lite_exchange_device(Index(device))) {}
  CUDAGuard(const CUDAGuard&) = delete;
  CUDAGuard& operator=(const CUDAGuard&) = delete;
  ~CUDAGuard() { grove_lite_exchange_device(before_); }

 private:
  static int Index(c10::Device device) {
    TORCH_CHECK(device.is_cuda(), "Expected a CUDA device, but got ", device);
    return device.has_index() ? device.index() : grove_lite_current_device();
  }
  int before_;
};

}  // namespace grove_lite
}  // namespace cuda
}  // namespace c10

namespace at {
namespace cuda {
using namespace c10::cuda;  // as PyTorch has it
inline namespace grove_lite {
using c10::cuda::CUDAGuard;
using c10::cuda::CUDAStream;
using c10::cuda::getCurrentCUDAStream;
inline cudaDeviceProp* getCurrentDeviceProperties() {
  return static_cast<cudaDeviceProp*>(const_cast<void*>(grove_lite_device_properties(-1)));
}
inline cudaDeviceProp* getDeviceProperties(c10::DeviceIndex device) {
  return static_cast<cudaDeviceProp*>(const_cast<void*>(grove_lite_device_properties(device)));
}
}  // namespace grove_lite
}  // namespace cuda
}  // namespace at

#define C10_CUDA_CHECK(EXPR)                                                                                        \
  do {                                                                                                              \
    const cudaError_t grove_lite_error = EXPR;                                                                      \
    grove_lite_cuda_check(static_cast<int>(grove_lite_error), __FILE__, __func__, static_cast<uint32_t>(__LINE__)); \
  } while (0)
#define AT_CUDA_CHECK(EXPR) C10_CUDA_CHECK(EXPR)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
