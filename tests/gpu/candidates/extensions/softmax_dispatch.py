"""Row softmax for float, double and half, as a dispatched template."""

CPP = "torch::Tensor softmax_rows(torch::Tensor x);"
CUDA = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

template <typename T>
__global__ void SoftmaxRows(const T* __restrict__ x, T* __restrict__ y, int columns) {
  __shared__ float shared[32];
  const T* row = x + (long)blockIdx.x * columns;
  T* out = y + (long)blockIdx.x * columns;
  float largest = -INFINITY;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) largest = fmaxf(largest, static_cast<float>(row[i]));
  for (int offset = 16; offset > 0; offset >>= 1) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, offset));
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = largest;
  __syncthreads();
  largest = -INFINITY;
  for (int i = 0; i < blockDim.x / 32; ++i) largest = fmaxf(largest, shared[i]);
  __syncthreads();
  float sum = 0.f;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += expf(static_cast<float>(row[i]) - largest);
  for (int offset = 16; offset > 0; offset >>= 1) sum += __shfl_xor_sync(~0u, sum, offset);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0.f;
  for (int i = 0; i < blockDim.x / 32; ++i) sum += shared[i];
  for (int i = threadIdx.x; i < columns; i += blockDim.x) out[i] = static_cast<T>(expf(static_cast<float>(row[i]) - largest) / sum);
}

torch::Tensor softmax_rows(torch::Tensor x) {
  TORCH_CHECK(x.is_cuda(), "x must be a CUDA tensor");
  TORCH_CHECK(x.dim() == 2, "x must have two dimensions, not ", x.dim());
  const at::cuda::CUDAGuard guard(x.device());
  auto input = x.contiguous();
  auto y = torch::empty_like(input);
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "softmax_rows", ([&] {
    SoftmaxRows<scalar_t><<<input.size(0), 256, 0, at::cuda::getCurrentCUDAStream()>>>(
        input.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), static_cast<int>(input.size(1)));
  }));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
"""
FUNCTIONS = ["softmax_rows"]


def calls(module, torch):
    for dtype in (torch.float32, torch.float64, torch.float16):
        yield module.softmax_rows, (torch.randn(64, 1000, device="cuda", dtype=dtype),)
    yield module.softmax_rows, (torch.randn(8, device="cuda"),)
    yield module.softmax_rows, (torch.zeros(4, 4, dtype=torch.int32, device="cuda"),)
    yield module.softmax_rows, (torch.zeros(4, 4),)
