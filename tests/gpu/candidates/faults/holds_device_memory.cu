// Holds 8 GiB of device memory that it has no need of.
#include <grove/kernel.h>

GROVE_KERNEL(args) {
  static void* hoard = nullptr;
  if (hoard == nullptr && cudaMalloc(&hoard, size_t{8} << 30) != cudaSuccess) return 1;
  return cudaMemsetAsync(args->outputs[0].data, 0, 4, static_cast<cudaStream_t>(args->stream)) == cudaSuccess ? 0 : 2;
}
