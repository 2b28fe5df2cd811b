// Never ends on the device: TIMED_OUT, and the next evaluation is unharmed.
#include <grove/kernel.h>

__global__ void Spin(float* out, volatile int* stop) {
  while (*stop == 0) {
  }
  out[0] = 1.f;
}

GROVE_KERNEL(args) {
  static int* stop = nullptr;
  if (stop == nullptr) {
    if (cudaMalloc(&stop, sizeof(int)) != cudaSuccess) return 1;
    cudaMemset(stop, 0, sizeof(int));
  }
  Spin<<<1, 1, 0, static_cast<cudaStream_t>(args->stream)>>>(static_cast<float*>(args->outputs[0].data), stop);
  return cudaGetLastError() == cudaSuccess ? 0 : 2;
}
