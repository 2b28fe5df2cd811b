"""A candidate in KernelBench's format: LayerNorm over (64, 256, 256), CUDA through load_inline.

Three kernels: partial sums by many blocks per sample, their combination, and the application.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

namespace {
constexpr int kThreads = 512;

// Mean and sum of squared deviations of n values, combined without cancellation (Chan, Golub and LeVeque 1979).
struct Moments {
  float n, mean, m2;
};
__device__ Moments Combine(Moments a, Moments b) {
  float n = a.n + b.n;
  if (n == 0.f) return a;
  float delta = b.mean - a.mean;
  return {n, a.mean + delta * b.n / n, a.m2 + b.m2 + delta * delta * a.n * b.n / n};
}
__device__ Moments BlockCombine(Moments value) {
  __shared__ Moments shared[kThreads / 32];
  for (int offset = 16; offset > 0; offset >>= 1) {
    Moments other{__shfl_down_sync(~0u, value.n, offset), __shfl_down_sync(~0u, value.mean, offset),
                  __shfl_down_sync(~0u, value.m2, offset)};
    value = Combine(value, other);
  }
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  value = {0.f, 0.f, 0.f};
  for (int i = 0; i < kThreads / 32; ++i) value = Combine(value, shared[i]);
  return value;
}

__global__ void Partial(const float4* x, Moments* partial, long quads) {
  const float4* row = x + blockIdx.y * quads;
  Moments m{0.f, 0.f, 0.f};
  for (long i = blockIdx.x * kThreads + threadIdx.x; i < quads; i += (long)gridDim.x * kThreads) {
    float4 v = row[i];
    float mean = 0.25f * (v.x + v.y + v.z + v.w);
    float dx = v.x - mean, dy = v.y - mean, dz = v.z - mean, dw = v.w - mean;
    m = Combine(m, {4.f, mean, dx * dx + dy * dy + dz * dz + dw * dw});
  }
  m = BlockCombine(m);
  if (threadIdx.x == 0) partial[blockIdx.y * gridDim.x + blockIdx.x] = m;
}

__global__ void Apply(const float4* x, const float4* gamma, const float4* beta, float4* y, const Moments* partial,
                      int parts, long quads, float eps) {
  Moments m{0.f, 0.f, 0.f};
  for (int i = threadIdx.x; i < parts; i += kThreads) m = Combine(m, partial[blockIdx.y * parts + i]);
  m = BlockCombine(m);
  float mean = m.mean, scale = rsqrtf(m.m2 / m.n + eps);
  const float4* row = x + blockIdx.y * quads;
  float4* out = y + blockIdx.y * quads;
  for (long i = blockIdx.x * kThreads + threadIdx.x; i < quads; i += (long)gridDim.x * kThreads) {
    float4 v = row[i], g = gamma[i], b = beta[i];
    out[i] = {(v.x - mean) * scale * g.x + b.x, (v.y - mean) * scale * g.y + b.y, (v.z - mean) * scale * g.z + b.z,
              (v.w - mean) * scale * g.w + b.w};
  }
}
}  // namespace

torch::Tensor layernorm(torch::Tensor x, torch::Tensor gamma, torch::Tensor beta, double eps) {
  auto y = torch::empty_like(x);
  long samples = x.size(0), quads = x.numel() / samples / 4;
  int parts = 64;
  auto partial = torch::empty({samples, parts, 3}, x.options());
  auto stream = at::cuda::getCurrentCUDAStream();
  dim3 grid(parts, samples);
  auto* moments = reinterpret_cast<Moments*>(partial.data_ptr<float>());
  Partial<<<grid, kThreads, 0, stream>>>((const float4*)x.data_ptr<float>(), moments, quads);
  Apply<<<grid, kThreads, 0, stream>>>((const float4*)x.data_ptr<float>(), (const float4*)gamma.data_ptr<float>(),
                                       (const float4*)beta.data_ptr<float>(), (float4*)y.data_ptr<float>(), moments,
                                       parts, quads, (float)eps);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
"""

extension = load_inline(
    name="grove_test_layernorm",
    cpp_sources="torch::Tensor layernorm(torch::Tensor x, torch::Tensor gamma, torch::Tensor beta, double eps);",
    cuda_sources=CUDA,
    functions=["layernorm"],
    verbose=False,
)


class ModelNew(nn.Module):
    def __init__(self, normalized_shape: tuple):
        super().__init__()
        self.ln = nn.LayerNorm(normalized_shape=normalized_shape)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return extension.layernorm(x.contiguous(), self.ln.weight, self.ln.bias, self.ln.eps)
