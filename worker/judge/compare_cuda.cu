#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "worker/judge/compare_gpu.h"
#include "worker/judge/compare_passes.h"

namespace grove::judge {
namespace {

constexpr int kThreads = 256, kWarp = 32;
static_assert(kNeighbours % kWarp == 0, "a warp looks at a block of neighbours");

void Check(cudaError_t status) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();  // or the next one asked would be told of it
  throw std::runtime_error(std::string("comparing outputs on the device: ") + cudaGetErrorName(status) + ": " +
                           cudaGetErrorString(status));
}

// What the blocks of a kernel leave for the host; grows, and is kept.
template <typename T>
class Partials {
 public:
  ~Partials() { cudaFree(data_); }
  T* Room(std::size_t count) {
    if (count > count_) {
      cudaFree(data_);
      data_ = nullptr;
      count_ = 0;
      Check(cudaMalloc(&data_, count * sizeof(T)));
      count_ = count;
    }
    return data_;
  }
  std::vector<T> Fetch(std::size_t count) const {
    std::vector<T> host(count);
    Check(cudaMemcpy(host.data(), data_, count * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_ = 0;
};

int Blocks(std::int64_t elements) {
  static const int most = [] {
    int device = 0, processors = 0;
    Check(cudaGetDevice(&device));
    Check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
    return 4 * processors;
  }();
  return static_cast<int>(std::clamp<std::int64_t>(elements / (8 * kThreads), 1, most));
}

__device__ double AsDouble(double value) { return value; }
__device__ double AsDouble(float value) { return static_cast<double>(value); }
__device__ double AsDouble(__half value) { return static_cast<double>(__half2float(value)); }
__device__ double AsDouble(__nv_bfloat16 value) { return static_cast<double>(__bfloat162float(value)); }

template <typename T>
struct Arrays {
  const T *got, *reference;
  const double *high, *nudged;  // null where there is none
  std::int64_t n;

  __device__ ComparedElement At(std::int64_t i) const {
    ComparedElement element;
    element.reference = AsDouble(reference[i]);
    if (got != nullptr) element.got = AsDouble(got[i]);
    if (high != nullptr) element.high = high[i];
    if (nudged != nullptr) element.nudged = nudged[i];
    return element;
  }
};

// One tally of the block's, left for the host.
template <typename Tally>
__device__ void Leave(const Tally& mine, Tally* partials) {
  static_assert(std::is_trivially_copyable_v<Tally>);
  __shared__ alignas(16) unsigned char memory[kThreads * sizeof(Tally)];  // of a Tally: no constructor may run here
  Tally* all = reinterpret_cast<Tally*>(memory);
  all[threadIdx.x] = mine;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) Merge(all[threadIdx.x + half], &all[threadIdx.x]);
    __syncthreads();
  }
  if (threadIdx.x == 0) partials[blockIdx.x] = all[0];
}

template <typename T>
__global__ void MagnitudePass(Arrays<T> arrays, double bound, double tiny, MagnitudeTally* partials) {
  MagnitudeTally tally;
  arrays.got = nullptr;
  arrays.nudged = nullptr;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < arrays.n; i += step) {
    TallyMagnitude(arrays.At(i), arrays.high != nullptr, bound, tiny, &tally);
  }
  Leave(tally, partials);
}

template <typename T>
__global__ void ResponseKernel(Arrays<T> arrays, ResponsePass pass, ResponseTally* partials) {
  ResponseTally tally;
  arrays.got = nullptr;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < arrays.n; i += step) {
    TallyResponse(arrays.At(i), arrays.nudged != nullptr, pass, &tally);
  }
  Leave(tally, partials);
}

__device__ double WarpSum(double value) {
  for (int half = kWarp / 2; half > 0; half /= 2) value += __shfl_down_sync(0xffffffffu, value, half);
  return value;
}

// Each warp looks at one block of neighbours after another.
template <typename T>
__global__ void ErrorKernel(Arrays<T> arrays, ErrorPass pass, ErrorTally* partials) {
  ErrorTally tally;
  const int lane = threadIdx.x % kWarp;
  const std::int64_t warp = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) / kWarp;
  const std::int64_t warps = static_cast<std::int64_t>(gridDim.x) * (kThreads / kWarp);
  for (std::int64_t begin = warp * kNeighbours; begin < arrays.n; begin += warps * kNeighbours) {
    BlockTally block;
#pragma unroll 4
    for (std::int64_t i = begin + lane; i < begin + kNeighbours; i += kWarp) {
      if (i < arrays.n) TallyError(i, arrays.At(i), pass, &tally, &block);
    }
    if (pass.limits.block > 0) {
      block.elements = static_cast<std::int64_t>(WarpSum(static_cast<double>(block.elements)));
      block.errors = WarpSum(block.errors);
      block.magnitudes = WarpSum(block.magnitudes);
      block.responses = WarpSum(block.responses);
      block.noise = WarpSum(block.noise);
      if (lane == 0 && !BlockOk(pass.limits, block)) ++tally.blocks;
    }
  }
  Leave(tally, partials);
}

template <typename Tally>
Tally Total(const Partials<Tally>& partials, int blocks) {
  Tally total;
  for (const Tally& part : partials.Fetch(static_cast<std::size_t>(blocks))) Merge(part, &total);
  return total;
}

template <typename T>
Comparison CompareAs(const ComparisonInput& input, const Rule& rule) {
  static Partials<MagnitudeTally> magnitudes;
  static Partials<ResponseTally> responses;
  static Partials<ErrorTally> errors;
  Arrays<T> arrays{};
  arrays.got = static_cast<const T*>(input.got);
  arrays.reference = static_cast<const T*>(input.reference);
  arrays.high = input.high;
  arrays.nudged = input.high != nullptr ? input.nudged : nullptr;
  arrays.n = input.elements * (input.type.kind == wire::DTypeKind::kComplex ? 2 : 1);
  const int blocks = Blocks(arrays.n);
  const auto room = static_cast<std::size_t>(blocks);

  MagnitudePass<<<blocks, kThreads>>>(arrays, RelativeBound(rule), TinyOf(input.type), magnitudes.Room(room));
  Check(cudaGetLastError());
  const MagnitudeTally magnitude = Total(magnitudes, blocks);
  ResponseTally response;
  if (arrays.high != nullptr) {
    ResponseKernel<<<blocks, kThreads>>>(arrays, ResponsesFor(input, rule, magnitude), responses.Room(room));
    Check(cudaGetLastError());
    response = Total(responses, blocks);
  }
  Comparison result;
  const ScaledThresholds limits = LimitsFor(input, rule, magnitude, response, &result);
  if (input.got == nullptr) return result;
  ErrorKernel<<<blocks, kThreads>>>(arrays, PassFor(input, rule, limits), errors.Room(room));
  Check(cudaGetLastError());
  Decide(input, rule, magnitude, limits, Total(errors, blocks), &result);
  return result;
}

// --------------------------------------------------------------------------------------------------------------- rows
struct RowTally {
  double largest = 0, squares = 0, expected_squares = 0;  // the last of those that are finite
  std::int64_t undefined = 0;                             // elements of which one side alone is a NaN
};

GROVE_ANYWHERE void Merge(const RowTally& other, RowTally* tally) {
  tally->largest = Larger(tally->largest, other.largest);
  tally->squares += other.squares;
  tally->expected_squares += other.expected_squares;
  tally->undefined += other.undefined;
}

// `extreme`: the largest number of the type, which stands for infinity.
template <typename T>
__global__ void RowPass(const T* got, const T* expected, std::int64_t n, double extreme, RowTally* partials) {
  RowTally tally;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < n; i += step) {
    if constexpr (std::is_same_v<T, unsigned char>) {
      if (got[i] != expected[i]) tally.largest = 1;
    } else {
      const double x = AsDouble(got[i]), y = AsDouble(expected[i]);
      if (std::fabs(y) < extreme) tally.expected_squares += y * y;
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      const double error = std::fabs(x - y);
      if (std::isnan(error)) {
        ++tally.undefined;
      } else {
        tally.largest = Larger(tally.largest, error);
        tally.squares += error * error;
      }
    }
  }
  Leave(tally, partials);
}

template <typename T>
void QueueRow(const ComparedRow& row, std::int64_t n, int blocks, double extreme, RowTally* partials) {
  RowPass<T>
      <<<blocks, kThreads>>>(static_cast<const T*>(row.got), static_cast<const T*>(row.expected), n, extreme, partials);
  Check(cudaGetLastError());
}

// Numbers of a row: parts of complex ones, bytes of exact ones.
std::int64_t Parts(const ComparedRow& row) {
  if (row.type.exact()) return row.elements * static_cast<std::int64_t>(row.type.bytes());
  return row.type.kind == wire::DTypeKind::kComplex ? 2 * row.elements : row.elements;
}

}  // namespace

Comparison CompareOnGpu(const ComparisonInput& input, const Rule& rule) {
  const int bits = input.type.kind == wire::DTypeKind::kComplex ? input.type.bits / 2 : input.type.bits;
  if (input.type.kind == wire::DTypeKind::kBfloat) return CompareAs<__nv_bfloat16>(input, rule);
  if (bits == 16) return CompareAs<__half>(input, rule);
  if (bits == 32) return CompareAs<float>(input, rule);
  return CompareAs<double>(input, rule);
}

std::vector<RowError> RowErrorsOnGpu(const std::vector<ComparedRow>& rows) {
  static Partials<RowTally> partials;
  std::vector<int> blocks;
  std::size_t count = 0;
  for (const ComparedRow& row : rows) {
    blocks.push_back(Blocks(Parts(row)));
    count += static_cast<std::size_t>(blocks.back());
  }
  if (count == 0) return {};
  RowTally* next = partials.Room(count);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ComparedRow& row = rows[i];
    const std::int64_t n = Parts(row);
    const int bits = row.type.kind == wire::DTypeKind::kComplex ? row.type.bits / 2 : row.type.bits;
    if (row.type.exact()) {
      QueueRow<unsigned char>(row, n, blocks[i], 0, next);
    } else if (row.type.kind == wire::DTypeKind::kBfloat) {
      QueueRow<__nv_bfloat16>(row, n, blocks[i], 0x1.fep127, next);
    } else if (bits == 16) {
      QueueRow<__half>(row, n, blocks[i], 65504, next);
    } else if (bits == 32) {
      QueueRow<float>(row, n, blocks[i], FLT_MAX, next);
    } else {
      QueueRow<double>(row, n, blocks[i], DBL_MAX, next);
    }
    next += blocks[i];
  }
  const std::vector<RowTally> parts = partials.Fetch(count);
  std::vector<RowError> errors;
  std::size_t at = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    RowTally tally;
    for (int block = 0; block < blocks[i]; ++block) Merge(parts[at++], &tally);
    const double n = static_cast<double>(std::max<std::int64_t>(Parts(rows[i]), 1));
    RowError error;
    if (tally.undefined > 0) {
      error.largest = error.rms = std::nan("");
    } else if (rows[i].type.exact()) {
      error.largest = error.rms = tally.largest;
    } else {
      const double scale = std::sqrt(tally.expected_squares / n), unit = scale == 0 ? 1 : scale;
      error = {tally.largest / unit, std::sqrt(tally.squares / n) / unit};
    }
    errors.push_back(error);
  }
  return errors;
}

}  // namespace grove::judge
