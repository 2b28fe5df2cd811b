// Reads eight bytes at an address that is no multiple of eight.
#include <grove/kernel.h>

__global__ void Read(const char* in, double* out) { *out = *reinterpret_cast<const double*>(in + 1); }

GROVE_KERNEL(args) {
  Read<<<1, 1, 0, static_cast<cudaStream_t>(args->stream)>>>(static_cast<const char*>(args->inputs[0].data),
                                                             static_cast<double*>(args->outputs[0].data));
  return cudaGetLastError() == cudaSuccess ? 0 : 2;
}
