"""Tiled float32 matrix product with options spelled out, as generated kernels often have it."""

CPP = "torch::Tensor matmul_tiled(torch::Tensor a, torch::Tensor b);"
CUDA = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

#define TILE 32
#define CHECK_INPUT(x) TORCH_CHECK(x.device().is_cuda() && x.is_contiguous(), #x " must be a contiguous CUDA tensor")

__global__ void MatmulTiled(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float left[TILE][TILE], right[TILE][TILE];
  const int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
  float sum = 0.f;
  for (int t = 0; t < k; t += TILE) {
    left[threadIdx.y][threadIdx.x] = row < m && t + threadIdx.x < k ? a[row * k + t + threadIdx.x] : 0.f;
    right[threadIdx.y][threadIdx.x] = t + threadIdx.y < k && column < n ? b[(t + threadIdx.y) * n + column] : 0.f;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < TILE; ++i) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}

torch::Tensor matmul_tiled(torch::Tensor a, torch::Tensor b) {
  CHECK_INPUT(a);
  CHECK_INPUT(b);
  TORCH_CHECK(a.size(1) == b.size(0), "inner sizes differ: ", a.sizes(), " and ", b.sizes());
  TORCH_CHECK(a.dtype() == torch::kFloat32 && b.dtype() == torch::kFloat32, "float32 only");
  const int m = a.size(0), k = a.size(1), n = b.size(1);
  auto options = torch::TensorOptions().dtype(torch::kFloat32).device(a.device());
  auto c = torch::zeros({m, n}, options);
  dim3 block(TILE, TILE), grid((n + TILE - 1) / TILE, (m + TILE - 1) / TILE);
  MatmulTiled<<<grid, block>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), m, n, k);
  cudaError_t error = cudaGetLastError();
  TORCH_CHECK(error == cudaSuccess, "launch: ", cudaGetErrorString(error));
  return c;
}
"""
FUNCTIONS = ["matmul_tiled"]
OPTIONS = {"extra_cuda_cflags": ["-O3", "--use_fast_math"], "extra_cflags": ["-O3"]}


def calls(module, torch):
    yield module.matmul_tiled, (torch.randn(130, 70, device="cuda"), torch.randn(70, 50, device="cuda"))
    yield module.matmul_tiled, (torch.randn(130, 70, device="cuda"), torch.randn(71, 50, device="cuda"))
    yield module.matmul_tiled, (torch.randn(4, 4, device="cuda").t()[:3], torch.randn(4, 4, device="cuda"))
