// Takes all device memory it can get, keeps it, and computes nothing: it must end with a verdict of its own, and the
// memory must be back for the next evaluation.
#include <grove/kernel.h>

GROVE_KERNEL(args) {
  (void)args;
  for (size_t piece = size_t{8} << 30; piece >= (size_t{1} << 20);) {
    void* memory = nullptr;
    if (cudaMalloc(&memory, piece) != cudaSuccess) {
      (void)cudaGetLastError();
      piece /= 2;
    }
  }
  void* last = nullptr;
  return cudaMalloc(&last, size_t{64} << 20) == cudaSuccess ? 0 : 3;
}
