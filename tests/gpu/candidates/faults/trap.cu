#include <grove/kernel.h>

__global__ void Trap() { asm volatile("trap;"); }

GROVE_KERNEL(args) {
  Trap<<<1, 32, 0, static_cast<cudaStream_t>(args->stream)>>>();
  return cudaGetLastError() == cudaSuccess ? 0 : 2;
}
