// Pinned host memory until there is no more, or 64 GiB.
#include <grove/kernel.h>
#include <stdio.h>
#include <string.h>

GROVE_KERNEL(args) {
  (void)args;
  for (int i = 0; i < 64; ++i) {
    void* memory = nullptr;
    const cudaError_t status = cudaHostAlloc(&memory, size_t{1} << 30, cudaHostAllocDefault);
    if (status != cudaSuccess) {
      fprintf(stderr, "stopped after %d GiB: %s\n", i, cudaGetErrorString(status));
      return 3;
    }
    memset(memory, 1, size_t{1} << 30);
  }
  fprintf(stderr, "64 GiB of pinned memory were to be had\n");
  return 4;
}
