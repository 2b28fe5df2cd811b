#include "worker/pipeline/calibration_kernels.h"

#include "absl/strings/str_cat.h"

namespace grove::worker {
namespace {

// y = 2x after STEPS multiply-adds with 1 and 0, which the compiler must not know: it would leave the work out. STEPS
// is a multiple of 4, so that more of them are more rounds of the same loop and nothing else.
constexpr char kCuda[] = R"(#include <grove/kernel.h>
__global__ void Work(const float* x, float* y, long n, float one, float zero) {
  const long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
#pragma unroll 4
  for (int s = 0; s < STEPS; ++s) v = fmaf(v, one, zero);
  y[i] = v * 2.0f;
}
GROVE_KERNEL(args) {
  const long n = args->inputs[0].shape[0];
  volatile float known_later[2] = {1.0f, 0.0f};
  const float one = known_later[0], zero = known_later[1];
  const int block = 256;
  Work<<<(unsigned)((n + block - 1) / block), block, 0, (cudaStream_t)args->stream>>>(
      (const float*)args->inputs[0].data, (float*)args->outputs[0].data, n, one, zero);
  return cudaGetLastError() == cudaSuccess ? 0 : 1;
}
)";

// The same in runs of 64 elements, which stay in registers or the nearest cache. One thread: what is measured is the
// clock and not the scheduler.
constexpr char kCpp[] = R"(#include <grove/kernel.h>
GROVE_KERNEL(args) {
  const float* x = (const float*)args->inputs[0].data;
  float* y = (float*)args->outputs[0].data;
  const int64_t n = args->inputs[0].shape[0];
  volatile float known_later[2] = {1.0f, 0.0f};
  const float one = known_later[0], zero = known_later[1];
  for (int64_t i = 0; i < n; i += 64) {
    const int m = n - i < 64 ? (int)(n - i) : 64;
    float v[64] = {0};
    for (int j = 0; j < m; ++j) v[j] = x[i + j];
    for (int s = 0; s < STEPS; ++s) {
      for (int j = 0; j < 64; ++j) v[j] = v[j] * one + zero;
    }
    for (int j = 0; j < m; ++j) y[i + j] = v[j] * 2.0f;
  }
  return 0;
}
)";

CalibrationCase Case(const std::string& name, int64_t elements, int64_t steps, double target, int64_t unit = 1) {
  CalibrationCase one;
  one.name = name;
  one.problem.set_name(absl::StrCat("calibration-", elements));
  one.problem.set_format(v1::PROBLEM_FORMAT_NATIVE);
  one.problem.set_source(absl::StrCat(
      "name = \"calibration\"\ntorchscript = '''\ndef forward(x: Tensor) -> Tensor:\n    return x * 2.0\n'''\n",
      "[[inputs]]\nname = \"x\"\nshape = [", elements, "]\ndtype = \"float32\"\n"));
  one.steps = steps;
  one.target_seconds = target;
  one.step_unit = unit;
  return one;
}

}  // namespace

std::vector<CalibrationCase> CalibrationCases(v1::DeviceKind device) {
  // Two problems, so that the judges of both stay warm.
  if (device == v1::DEVICE_KIND_CUDA) {
    // Steps for some 1.6e13 multiply-adds a second; they are scaled to what the device does.
    constexpr int64_t kElements = 1 << 20;
    return {Case("arithmetic, 6 us", kElements, 60, 6e-6, 4), Case("arithmetic, 20 us", kElements, 280, 20e-6, 4),
            Case("arithmetic, 100 us", kElements, 1600, 100e-6, 200), Case("memory, 128 MiB", 1 << 24, 0, 0),
            Case("arithmetic, 1 ms", kElements, 15000, 1e-3, 4)};
  }
  // For some 1e10 multiply-adds a second of one thread.
  constexpr int64_t kElements = 1 << 12;
  return {Case("arithmetic, 20 us", kElements, 50, 20e-6), Case("arithmetic, 100 us", kElements, 250, 100e-6, 50),
          Case("memory, 8 MiB", 1 << 20, 0, 0), Case("arithmetic, 1 ms", kElements, 2400, 1e-3)};
}

size_t PlantedCase(const std::vector<CalibrationCase>& cases) {
  for (size_t i = 0; i < cases.size(); ++i) {
    if (cases[i].target_seconds == 100e-6) return i;
  }
  return 0;
}

v1::Candidate CalibrationCandidate(v1::DeviceKind device, int64_t steps) {
  const bool cuda = device == v1::DEVICE_KIND_CUDA;
  v1::Candidate candidate;
  candidate.set_name(cuda ? "calibration.cu" : "calibration.cpp");
  candidate.set_format(cuda ? v1::CANDIDATE_FORMAT_CUDA : v1::CANDIDATE_FORMAT_CPP);
  candidate.set_source(cuda ? kCuda : kCpp);
  candidate.add_build_flags(absl::StrCat("-DSTEPS=", steps));
  return candidate;
}

}  // namespace grove::worker
