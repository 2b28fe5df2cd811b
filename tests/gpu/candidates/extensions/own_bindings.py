"""Bindings of its own in the .cu file, no C++ source, tensor cores by wmma."""

CPP = ""
CUDA = r"""
#include <torch/extension.h>
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

__global__ void HalfProduct(const half* a, const half* b, float* c, int n) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.f);
  for (int k = 0; k < n; k += 16) {
    wmma::load_matrix_sync(left, a + blockIdx.y * 16 * n + k, n);
    wmma::load_matrix_sync(right, b + k * n + blockIdx.x * 16, n);
    wmma::mma_sync(sum, left, right, sum);
  }
  wmma::store_matrix_sync(c + blockIdx.y * 16 * n + blockIdx.x * 16, sum, n, wmma::mem_row_major);
}

torch::Tensor half_product(torch::Tensor a, torch::Tensor b) {
  TORCH_CHECK(a.scalar_type() == torch::kHalf && b.scalar_type() == at::ScalarType::Half, "half only, got ", a.scalar_type());
  const int n = a.size(0);
  auto c = torch::empty({n, n}, a.options().dtype(torch::kFloat));
  HalfProduct<<<dim3(n / 16, n / 16), 32>>>(reinterpret_cast<const half*>(a.data_ptr<at::Half>()),
                                           reinterpret_cast<const half*>(b.data_ptr<at::Half>()), c.data_ptr<float>(), n);
  return c;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("half_product", &half_product, "a times b"); }
"""
FUNCTIONS = None


def calls(module, torch):
    a, b = (torch.randn(64, 64, device="cuda", dtype=torch.half) for _ in range(2))
    yield module.half_product, (a, b)
    yield module.half_product, (a.float(), b)
