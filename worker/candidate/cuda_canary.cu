#include <cuda_fp16.h>
#include <mma.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "worker/candidate/cuda_canary.h"

namespace grove::candidate {
namespace {

// The known sequence: a linear congruence, whose value after any number of steps has a closed form.
constexpr std::uint32_t kFactor = 1664525, kSummand = 1013904223;
constexpr int kCanarySteps = 1 << 19;  // some 1 ms: long against the clock's resolution, short against a lease
constexpr std::size_t kCanaryBytes = std::size_t{64} << 20;

__global__ void RunSequence(std::uint32_t* out, int steps) {
  const std::uint32_t id = blockIdx.x * blockDim.x + threadIdx.x;
  std::uint32_t value = id;
  for (int i = 0; i < steps; ++i) value = value * kFactor + kSummand;
  out[id] = value;
}

__global__ void WritePattern(std::uint32_t* out, std::size_t words) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x; i < words; i += step) {
    out[i] = static_cast<std::uint32_t>(i) * kFactor + kSummand;
  }
}

// Read by another thread than the one that wrote.
__global__ void CheckPattern(const std::uint32_t* in, std::size_t words, unsigned int* wrong) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  unsigned int found = 0;
  for (std::size_t i = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x; i < words; i += step) {
    const std::size_t at = words - 1 - i;
    found += in[at] != static_cast<std::uint32_t>(at) * kFactor + kSummand;
  }
  if (found != 0) atomicAdd(wrong, found);
}

// The same sequence by fused multiplications and additions, modulo 2^32 in float64 and modulo 2^12 in float32: all
// numbers on the way are whole and fit (2^32 * kFactor < 2^53, 2^12 * kFactor12 < 2^24), so that nothing is rounded.
constexpr int kFloatingSteps = 1 << 12;
constexpr std::uint32_t kFactor12 = 1229, kSummand12 = 351;

__global__ void CheckFloating(int steps, unsigned int* wrong) {
  const std::uint32_t id = blockIdx.x * blockDim.x + threadIdx.x;
  std::uint32_t whole = id, whole12 = id % 4096;
  double wide = id;
  float narrow = static_cast<float>(whole12);
  for (int i = 0; i < steps; ++i) {
    whole = whole * kFactor + kSummand;
    wide = fma(wide, static_cast<double>(kFactor), static_cast<double>(kSummand));
    wide = fma(floor(wide * 0x1p-32), -0x1p32, wide);
    whole12 = (whole12 * kFactor12 + kSummand12) % 4096;
    narrow = fmaf(narrow, static_cast<float>(kFactor12), static_cast<float>(kSummand12));
    narrow = fmaf(floorf(narrow * 0x1p-12f), -0x1p12f, narrow);
  }
  if (wide != static_cast<double>(whole) || narrow != static_cast<float>(whole12)) atomicAdd(wrong, 1u);
}

// Products of 16 x 16 matrices of small whole numbers on tensor cores, against the same in integers. A warp a block.
__global__ void CheckProducts([[maybe_unused]] unsigned int* wrong) {
#if __CUDA_ARCH__ >= 700
  namespace wmma = nvcuda::wmma;
  constexpr int kSide = 16, kRounds = 64;
  __shared__ alignas(32) __half a[kSide * kSide], b[kSide * kSide];  // as load_matrix_sync has it
  __shared__ alignas(32) float c[kSide * kSide];
  for (int round = 0; round < kRounds; ++round) {
    const std::uint32_t seed = (blockIdx.x * kRounds + round) * kFactor + kSummand;
    const auto left = [&](int i) { return static_cast<int>(((seed + i) * kFactor) >> 28); };        // 0 to 15
    const auto right = [&](int i) { return static_cast<int>(((seed - i) * kSummand) >> 28) - 8; };  // -8 to 7
    for (int i = threadIdx.x; i < kSide * kSide; i += 32) {
      a[i] = __int2half_rn(left(i));
      b[i] = __int2half_rn(right(i));
    }
    __syncwarp();
    wmma::fragment<wmma::matrix_a, kSide, kSide, kSide, __half, wmma::row_major> one;
    wmma::fragment<wmma::matrix_b, kSide, kSide, kSide, __half, wmma::row_major> two;
    wmma::fragment<wmma::accumulator, kSide, kSide, kSide, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    wmma::load_matrix_sync(one, a, kSide);
    wmma::load_matrix_sync(two, b, kSide);
    wmma::mma_sync(sum, one, two, sum);
    wmma::store_matrix_sync(c, sum, kSide, wmma::mem_row_major);
    __syncwarp();
    for (int i = threadIdx.x; i < kSide * kSide; i += 32) {
      int expected = 0;
      for (int k = 0; k < kSide; ++k) expected += left(i / kSide * kSide + k) * right(k * kSide + i % kSide);
      if (c[i] != static_cast<float>(expected)) atomicAdd(wrong, 1u);
    }
    __syncwarp();
  }
#endif
}

std::string Text(cudaError_t error) {
  return std::string("the test kernel: ") + cudaGetErrorName(error) + ": " + cudaGetErrorString(error);
}

// Memory, stream and events of one run of it. Each step answers what is wrong, or empty.
class Canary {
 public:
  Canary(const cudaDeviceProp& properties, cudaStream_t stream)
      : stream_(stream), blocks_(properties.multiProcessorCount * 8) {}  // several waves of every multiprocessor
  ~Canary() {
    if (begin_ != nullptr) cudaEventDestroy(begin_);
    if (end_ != nullptr) cudaEventDestroy(end_);
    cudaFree(wrong_);
    cudaFree(memory_);
  }

  std::string Prepare() {
    cudaError_t status = cudaMalloc(&memory_, kCanaryBytes);
    if (status == cudaSuccess) status = cudaMalloc(&wrong_, sizeof *wrong_);
    if (status == cudaSuccess) status = cudaMemsetAsync(wrong_, 0, sizeof *wrong_, stream_);
    if (status == cudaSuccess) status = cudaEventCreate(&begin_);
    if (status == cudaSuccess) status = cudaEventCreate(&end_);
    return status == cudaSuccess ? "" : Text(status);
  }

  std::string Integers(double* seconds) {
    std::uint32_t factor = 1, summand = 0;
    for (int i = 0; i < kCanarySteps; ++i) {
      summand = summand * kFactor + kSummand;
      factor *= kFactor;
    }
    std::vector<std::uint32_t> host(static_cast<std::size_t>(blocks_) * kThreads);
    for (int round = 0; round < 3; ++round) {
      cudaError_t status = cudaEventRecord(begin_, stream_);
      RunSequence<<<blocks_, kThreads, 0, stream_>>>(memory_, kCanarySteps);
      if (status == cudaSuccess) status = cudaGetLastError();
      if (status == cudaSuccess) status = cudaEventRecord(end_, stream_);
      if (status == cudaSuccess) status = cudaStreamSynchronize(stream_);
      float milliseconds = 0;
      if (status == cudaSuccess) status = cudaEventElapsedTime(&milliseconds, begin_, end_);
      if (status == cudaSuccess) {
        status = cudaMemcpy(host.data(), memory_, host.size() * sizeof host[0], cudaMemcpyDeviceToHost);
      }
      if (status != cudaSuccess) return Text(status);
      if (round == 0 || milliseconds * 1e-3 < *seconds) *seconds = milliseconds * 1e-3;
      for (std::size_t i = 0; i < host.size(); ++i) {
        if (host[i] == static_cast<std::uint32_t>(i) * factor + summand) continue;
        return "thread " + std::to_string(i) + " of the test kernel computed a wrong value";
      }
    }
    return "";
  }

  std::string Floating() {
    CheckFloating<<<blocks_, kThreads, 0, stream_>>>(kFloatingSteps, wrong_);
    return None("threads of the test kernel computed wrong values in float32 or float64");
  }

  std::string Products() {
    CheckProducts<<<blocks_, 32, 0, stream_>>>(wrong_);
    return None("elements of matrix products came out wrong on tensor cores");
  }

  // What is written to memory is what is read from it.
  std::string Memory() {
    constexpr std::size_t kWords = kCanaryBytes / sizeof(std::uint32_t);
    WritePattern<<<1024, kThreads, 0, stream_>>>(memory_, kWords);
    CheckPattern<<<1024, kThreads, 0, stream_>>>(memory_, kWords, wrong_);
    return None("words of the test pattern were read otherwise than they were written");
  }

 private:
  static constexpr int kThreads = 256;

  // Waits, and says how many went wrong.
  std::string None(const char* what) {
    unsigned int count = 1;
    cudaError_t status = cudaGetLastError();
    if (status == cudaSuccess) status = cudaStreamSynchronize(stream_);
    if (status == cudaSuccess) status = cudaMemcpy(&count, wrong_, sizeof count, cudaMemcpyDeviceToHost);
    if (status != cudaSuccess) return Text(status);
    return count == 0 ? "" : std::to_string(count) + " " + what;
  }

  cudaStream_t stream_;
  int blocks_;
  std::uint32_t* memory_ = nullptr;
  unsigned int* wrong_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

}  // namespace

std::string RunCanary(int ordinal, cudaStream_t stream, double* seconds) {
  *seconds = 0;
  cudaDeviceProp properties;
  if (cudaError_t status = cudaGetDeviceProperties(&properties, ordinal); status != cudaSuccess) return Text(status);
  Canary canary(properties, stream);
  std::string error = canary.Prepare();
  if (error.empty()) error = canary.Integers(seconds);
  if (error.empty()) error = canary.Floating();
  if (error.empty()) error = canary.Products();
  if (error.empty()) error = canary.Memory();
  return error;
}

}  // namespace grove::candidate
