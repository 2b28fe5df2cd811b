// Softmax over the rows of a [4096, 65536] tensor, written by hand against grove/kernel.h.
//
//   grove eval docs/examples/problems/cuda/softmax.py docs/examples/candidates/softmax.cu --device cuda
//
// One block per row and two passes: each thread keeps a running maximum and the sum of exponentials relative to it
// (Milakov and Gimelshein, 2018), so the row is read twice instead of three times. Runs on any GPU since 7.0.
#include <cuda_runtime.h>
#include <grove/kernel.h>

constexpr int kRows = 4096;
constexpr int kPacks = 65536 / 4;  // float4 per row
constexpr int kThreads = 1024;

struct Running {
  float top, sum;  // sum of exp(v - top)
};

__device__ Running Merge(Running a, Running b) {
  const float top = fmaxf(a.top, b.top);
  return {top, a.sum * __expf(a.top - top) + b.sum * __expf(b.top - top)};
}

__global__ void __launch_bounds__(kThreads) Softmax(const float4* x, float4* y) {
  __shared__ Running warps[kThreads / 32];
  const float4* const row = x + static_cast<size_t>(blockIdx.x) * kPacks;
  Running r = {-1e30f, 0.0f};  // finite, so that no difference is ever infinity - infinity
  for (int i = threadIdx.x; i < kPacks; i += kThreads) {
    const float4 v = row[i];
    const float top = fmaxf(r.top, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
    r = {top,
         r.sum * __expf(r.top - top) + __expf(v.x - top) + __expf(v.y - top) + __expf(v.z - top) + __expf(v.w - top)};
  }
  for (int round = 0; round < 2; ++round) {
    for (int lane = 16; lane > 0; lane /= 2) {
      r = Merge(r, {__shfl_xor_sync(~0u, r.top, lane), __shfl_xor_sync(~0u, r.sum, lane)});
    }
    if (round == 1) break;
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = r;
    __syncthreads();
    r = warps[threadIdx.x % 32];
  }
  const float scale = 1.0f / r.sum;
  float4* const out = y + static_cast<size_t>(blockIdx.x) * kPacks;
  for (int i = threadIdx.x; i < kPacks; i += kThreads) {
    const float4 v = row[i];  // from the L2 cache, mostly: 132 rows of 256 KiB fit into 60 MiB
    __stcs(out + i, make_float4(__expf(v.x - r.top) * scale, __expf(v.y - r.top) * scale, __expf(v.z - r.top) * scale,
                                __expf(v.w - r.top) * scale));
  }
}

GROVE_KERNEL(args) {
  if (args->num_inputs != 1 || args->num_outputs != 1) return 1;
  Softmax<<<kRows, kThreads, 0, static_cast<cudaStream_t>(args->stream)>>>(
      static_cast<const float4*>(args->inputs[0].data), static_cast<float4*>(args->outputs[0].data));
  return cudaGetLastError() == cudaSuccess ? 0 : 2;
}
