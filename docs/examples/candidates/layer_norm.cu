// LayerNorm over the last three dimensions of a [16, 64, 256, 256] tensor, written by hand against grove/kernel.h.
//
//   grove eval docs/examples/problems/cuda/layernorm.py docs/examples/candidates/layer_norm.cu --device cuda
//
// Sixteen rows of four million numbers: one block per row would leave most of the GPU idle, so each row is cut into
// slices. The first kernel finds count, mean and sum of squared deviations of every slice; the second merges the slices
// of its row and writes. Inputs: x, weight, bias (the model's parameters follow its inputs, in state_dict order).
#include <cuda_runtime.h>
#include <grove/kernel.h>

constexpr int kRows = 16;
constexpr int kColumns = 64 * 256 * 256;
constexpr int kSliceColumns = 8192;
constexpr int kSlices = kColumns / kSliceColumns;
constexpr int kThreads = 256;
constexpr int kPacks = kSliceColumns / 4 / kThreads;  // float4 per thread and slice
constexpr float kEps = 1e-5f;
static_assert(kSlices * kSliceColumns == kColumns && kPacks * kThreads * 4 == kSliceColumns, "slices divide evenly");

struct Moments {
  float count, mean, m2;
};

// Chan, Golub and LeVeque (1979): nothing is subtracted that is larger than the deviations, so a large mean is
// harmless.
__device__ Moments Merge(Moments a, Moments b) {
  if (a.count == 0.0f || b.count == 0.0f) return a.count == 0.0f ? b : a;
  const float count = a.count + b.count, share = b.count / count, delta = b.mean - a.mean;
  return {count, a.mean + delta * share, a.m2 + b.m2 + delta * delta * a.count * share};
}

// Every thread of the block gets the merged moments.
__device__ Moments BlockMerge(Moments v) {
  __shared__ Moments warps[kThreads / 32];
  for (int round = 0; round < 2; ++round) {
    for (int lane = 16; lane > 0; lane /= 2) {
      v = Merge(v, {__shfl_xor_sync(~0u, v.count, lane), __shfl_xor_sync(~0u, v.mean, lane),
                    __shfl_xor_sync(~0u, v.m2, lane)});
    }
    if (round == 1) break;
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = v;
    __syncthreads();
    v = threadIdx.x % 32 < kThreads / 32 ? warps[threadIdx.x % 32] : Moments{0.0f, 0.0f, 0.0f};
  }
  return v;
}

// Scratch memory: allocated with the module, written anew by every call.
__device__ Moments partial[kRows][kSlices];

__global__ void __launch_bounds__(kThreads) Statistics(const float4* x) {
  const int row = blockIdx.x % kRows, slice = blockIdx.x / kRows;
  const float4* const p = x + static_cast<size_t>(row) * (kColumns / 4) + slice * (kSliceColumns / 4) + threadIdx.x;
  float4 v[kPacks];  // all loads are in flight before the first is used
#pragma unroll
  for (int i = 0; i < kPacks; ++i) v[i] = p[i * kThreads];
  float sum = 0.0f, m2 = 0.0f;
#pragma unroll
  for (int i = 0; i < kPacks; ++i) sum += (v[i].x + v[i].y) + (v[i].z + v[i].w);
  const float mean = sum / (4 * kPacks);
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    const float a = v[i].x - mean, b = v[i].y - mean, c = v[i].z - mean, d = v[i].w - mean;
    m2 += (a * a + b * b) + (c * c + d * d);
  }
  const Moments all = BlockMerge({4.0f * kPacks, mean, m2});
  if (threadIdx.x == 0) partial[row][slice] = all;
}

__global__ void __launch_bounds__(kThreads)
    Normalise(const float4* x, const float4* weight, const float4* bias, float4* y) {
  const int row = blockIdx.x % kRows, slice = blockIdx.x / kRows;
  Moments all = {0.0f, 0.0f, 0.0f};
  for (int i = threadIdx.x; i < kSlices; i += kThreads) all = Merge(all, partial[row][i]);
  all = BlockMerge(all);
  const float scale = rsqrtf(all.m2 / kColumns + kEps);
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    const size_t column = slice * (kSliceColumns / 4) + i * kThreads + threadIdx.x;
    const size_t at = static_cast<size_t>(row) * (kColumns / 4) + column;
    const float4 v = __ldcs(x + at), w = __ldg(weight + column), b = __ldg(bias + column);
    __stcs(y + at, make_float4((v.x - all.mean) * scale * w.x + b.x, (v.y - all.mean) * scale * w.y + b.y,
                               (v.z - all.mean) * scale * w.z + b.z, (v.w - all.mean) * scale * w.w + b.w));
  }
}

GROVE_KERNEL(args) {
  if (args->num_inputs != 3 || args->num_outputs != 1) return 1;
  const float4* const x = static_cast<const float4*>(args->inputs[0].data);
  const float4* const weight = static_cast<const float4*>(args->inputs[1].data);
  const float4* const bias = static_cast<const float4*>(args->inputs[2].data);
  const cudaStream_t stream = static_cast<cudaStream_t>(args->stream);
  Statistics<<<kRows * kSlices, kThreads, 0, stream>>>(x);
  Normalise<<<kRows * kSlices, kThreads, 0, stream>>>(x, weight, bias, static_cast<float4*>(args->outputs[0].data));
  return cudaGetLastError() == cudaSuccess ? 0 : 2;
}
