// Writes far outside every allocation: CRASHED with the CUDA error, and the next evaluation is unharmed.
#include <grove/kernel.h>

__global__ void Wild(float* out) { out[(1ll << 40) + threadIdx.x] = 1.f; }

GROVE_KERNEL(args) {
  Wild<<<1, 32, 0, static_cast<cudaStream_t>(args->stream)>>>(static_cast<float*>(args->outputs[0].data));
  return cudaGetLastError() == cudaSuccess ? 0 : 2;
}
