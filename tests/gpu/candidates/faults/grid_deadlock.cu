// Blocks wait for more blocks than fit on the device at once: none ever ends.
#include <grove/kernel.h>

__global__ void Barrier(unsigned* arrived, float* out) {
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1);
    while (atomicAdd(arrived, 0) < gridDim.x) {
    }
  }
  __syncthreads();
  out[0] = 1.f;
}

GROVE_KERNEL(args) {
  static unsigned* arrived = nullptr;
  if (arrived == nullptr && cudaMalloc(&arrived, sizeof(unsigned)) != cudaSuccess) return 1;
  cudaMemsetAsync(arrived, 0, sizeof(unsigned), static_cast<cudaStream_t>(args->stream));
  Barrier<<<1 << 20, 1024, 0, static_cast<cudaStream_t>(args->stream)>>>(arrived,
                                                                         static_cast<float*>(args->outputs[0].data));
  return cudaGetLastError() == cudaSuccess ? 0 : 2;
}
