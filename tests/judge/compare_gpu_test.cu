// Compare (compare.cc) and CompareOnGpu (compare_cuda.cu) on the same arrays: every figure must be the same, sums but
// for their order. Exits with the number of cases that differ, or with 77 where there is no GPU.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "worker/judge/compare.h"
#include "worker/judge/compare_gpu.h"

namespace {

using grove::judge::Comparison;
using grove::judge::ComparisonInput;
using grove::judge::Rule;

// A copy on the device; null where there is nothing to copy.
class OnDevice {
 public:
  OnDevice(const void* from, std::size_t bytes) {
    if (from == nullptr) return;
    if (cudaMalloc(&at_, bytes) != cudaSuccess || cudaMemcpy(at_, from, bytes, cudaMemcpyHostToDevice) != cudaSuccess) {
      std::fprintf(stderr, "no %zu bytes on the device\n", bytes);
      std::exit(255);
    }
  }
  ~OnDevice() { cudaFree(at_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  template <typename T>
  const T* as() const {
    return static_cast<const T*>(at_);
  }

 private:
  void* at_ = nullptr;
};

// What a candidate did to the result.
enum class Fault { kNone, kRounding, kOneWrong, kLastWrong, kZeros, kNanHere, kNanThere, kInfinities, kRow };
constexpr const char* kFaults[] = {"none",     "rounding",  "one wrong",  "last wrong",     "zeros",
                                   "NaN here", "NaN there", "infinities", "one row in half"};

struct Arrays {
  std::vector<double> reference, got, high, nudged;
};

Arrays Draw(std::size_t n, double epsilon, Fault fault, std::mt19937_64* random) {
  std::normal_distribution<double> normal;
  Arrays arrays;
  for (std::size_t i = 0; i < n; ++i) {
    const double exact = normal(*random) * (i % 7 == 0 ? 1e-3 : 1);
    arrays.high.push_back(exact);
    arrays.nudged.push_back(exact * (1 + 0x1p-23 * normal(*random)));
    arrays.reference.push_back(exact * (1 + 0.3 * epsilon * normal(*random)));
    arrays.got.push_back(exact * (1 + 0.3 * epsilon * normal(*random)));
  }
  const std::size_t some = (*random)() % n;
  switch (fault) {
    case Fault::kNone:
      arrays.got = arrays.reference;
      break;
    case Fault::kRounding:
      break;
    case Fault::kOneWrong:
      arrays.got[some] += 3;
      break;
    case Fault::kLastWrong:
      arrays.got[n - 1] += 3;
      break;
    case Fault::kZeros:
      arrays.got.assign(n, 0);
      break;
    case Fault::kNanHere:
      arrays.got[some] = std::nan("");
      break;
    case Fault::kNanThere:
      arrays.reference[some] = arrays.high[some] = arrays.nudged[some] = std::nan("");
      arrays.got[some] = arrays.reference[some];
      arrays.reference[n - 1] = std::nan("");
      break;
    case Fault::kInfinities:
      arrays.reference[some] = arrays.high[some] = arrays.got[some] = INFINITY;
      arrays.reference[n / 2] = INFINITY;
      arrays.got[n / 2] = -INFINITY;
      break;
    case Fault::kRow:
      for (std::size_t i = some; i < std::min(n, some + 256); ++i) {
        arrays.got[i] = static_cast<double>(__half2float(__float2half(static_cast<float>(arrays.got[i]))));
      }
      break;
  }
  return arrays;
}

template <typename T>
std::vector<T> Narrow(const std::vector<double>& values) {
  std::vector<T> narrow;
  for (double value : values) narrow.push_back(static_cast<T>(value));
  return narrow;
}
template <>
std::vector<__half> Narrow(const std::vector<double>& values) {
  std::vector<__half> narrow;
  for (double value : values) narrow.push_back(__float2half(static_cast<float>(value)));
  return narrow;
}
template <>
std::vector<__nv_bfloat16> Narrow(const std::vector<double>& values) {
  std::vector<__nv_bfloat16> narrow;
  for (double value : values) narrow.push_back(__float2bfloat16(static_cast<float>(value)));
  return narrow;
}

// What differs between the two, or nothing. Sums of squares are made in other orders: 1e-9 of themselves.
std::string Difference(const Comparison& cpu, const Comparison& gpu) {
  const auto near = [](double a, double b) {
    return (std::isnan(a) && std::isnan(b)) || a == b ||
           std::fabs(a - b) <= 1e-9 * std::max(std::fabs(a), std::fabs(b));
  };
  std::string all;
  const auto look = [&all](const char* name, bool same) { all += same ? "" : std::string(" ") + name; };
  look("ok", cpu.ok == gpu.ok);
  look("excused", cpu.excused == gpu.excused);
  look("undecided", cpu.undecided == gpu.undecided);
  look("why", cpu.why == gpu.why);
  look("elements", cpu.elements == gpu.elements);
  look("mismatched", cpu.mismatched == gpu.mismatched);
  look("worst", cpu.worst == gpu.worst);
  look("expected", near(cpu.expected, gpu.expected));
  look("got", near(cpu.got, gpu.got));
  look("error", near(cpu.error, gpu.error));
  look("allowed", near(cpu.allowed, gpu.allowed));
  look("max_abs_error", near(cpu.max_abs_error, gpu.max_abs_error));
  look("max_rel_error", near(cpu.max_rel_error, gpu.max_rel_error));
  look("scaled_error", near(cpu.scaled_error, gpu.scaled_error));
  look("scaled_allowed", near(cpu.scaled_allowed, gpu.scaled_allowed));
  look("scaled_same", near(cpu.scaled_same, gpu.scaled_same));
  look("passes_scaled", cpu.passes_scaled == gpu.passes_scaled);
  look("passes_1e4", cpu.passes_1e4 == gpu.passes_1e4);
  look("passes_1e2", cpu.passes_1e2 == gpu.passes_1e2);
  look("noise.known", cpu.noise.known == gpu.noise.known);
  look("noise.rms", near(cpu.noise.rms, gpu.noise.rms));
  look("noise.max", near(cpu.noise.max, gpu.noise.max));
  look("noise.relative_outliers", near(cpu.noise.relative_outliers, gpu.noise.relative_outliers));
  look("noise.condition", near(cpu.noise.condition, gpu.noise.condition));
  look("noise.condition_max", near(cpu.noise.condition_max, gpu.noise.condition_max));
  look("noise.unstable", near(cpu.noise.unstable, gpu.noise.unstable));
  return all;
}

int cases = 0, different = 0, right = 0;

template <typename T>
void Try(const char* type, double epsilon, std::mt19937_64* random) {
  const grove::wire::DType dtype = *grove::wire::FindDType(type);
  const std::size_t parts = dtype.kind == grove::wire::DTypeKind::kComplex ? 2 : 1;
  for (const std::size_t elements : {1u, 255u, 256u, 257u, 100003u, 3u << 20}) {
    for (int fault = 0; fault <= static_cast<int>(Fault::kRow); ++fault) {
      const Arrays arrays = Draw(elements * parts, epsilon, static_cast<Fault>(fault), random);
      const std::vector<T> reference = Narrow<T>(arrays.reference), got = Narrow<T>(arrays.got);
      for (int way = 0; way < 4; ++way) {
        ComparisonInput here;
        here.got = got.data();
        here.reference = reference.data();
        here.high = way >= 1 ? arrays.high.data() : nullptr;
        here.nudged = way >= 2 ? arrays.nudged.data() : nullptr;
        here.elements = static_cast<std::int64_t>(elements);
        here.type = dtype;
        here.reduction = 64;
        Rule rule;
        if (way == 3) {
          rule.mode = grove::judge::RuleMode::kAbsoluteRelative;
          rule.atol = rule.rtol = 1e-4;
        }
        const OnDevice there_got(here.got, got.size() * sizeof(T)),
            there_reference(here.reference, got.size() * sizeof(T)), there_high(here.high, arrays.high.size() * 8),
            there_nudged(here.nudged, arrays.nudged.size() * 8);
        ComparisonInput there = here;
        there.got = there_got.as<void>();
        there.reference = there_reference.as<void>();
        there.high = there_high.as<double>();
        there.nudged = there_nudged.as<double>();
        const Comparison cpu = Compare(here, rule), gpu = CompareOnGpu(there, rule);
        ++cases;
        right += cpu.ok ? 1 : 0;
        const std::string difference = Difference(cpu, gpu);
        if (difference.empty()) continue;
        ++different;
        std::printf("DIFFERENT %s, %zu elements, %s, way %d:%s\n  cpu: %d %s\n  gpu: %d %s\n", type, elements,
                    kFaults[fault], way, difference.c_str(), cpu.ok, cpu.why.c_str(), gpu.ok, gpu.why.c_str());
      }
    }
  }
}

}  // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("skipped: no GPU");
    return 77;
  }
  std::mt19937_64 random(20250528);
  Try<__half>("float16", 0x1p-10, &random);
  Try<__nv_bfloat16>("bfloat16", 0x1p-7, &random);
  Try<float>("float32", 0x1p-23, &random);
  Try<double>("float64", 0x1p-52, &random);
  Try<float>("complex64", 0x1p-23, &random);
  std::printf("%d comparisons, of which %d were right on the CPU, %d came out differently on the GPU\n", cases, right,
              different);
  return std::min(different, 70);
}
