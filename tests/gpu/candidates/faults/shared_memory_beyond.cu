// Writes beyond its block's shared memory.
#include <grove/kernel.h>

__global__ void Beyond(float* out, int far) {
  __shared__ float mine[32];
  mine[threadIdx.x + far] = 1.f;
  __syncthreads();
  out[threadIdx.x] = mine[threadIdx.x];
}

GROVE_KERNEL(args) {
  Beyond<<<1, 32, 0, static_cast<cudaStream_t>(args->stream)>>>(static_cast<float*>(args->outputs[0].data), 1 << 20);
  return cudaGetLastError() == cudaSuccess ? 0 : 2;
}
