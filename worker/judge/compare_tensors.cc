// The comparison rule over tensors: in place on the CPU, with the device's own arithmetic on a GPU.
#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "worker/judge/evaluation.h"

namespace grove::judge {
namespace {

// Below this many elements a copy to the host costs less than the launches of the device path.
constexpr std::int64_t kHostElements = 1 << 16;

Comparison CompareOnHost(const at::Tensor& got, const at::Tensor& reference, const at::Tensor& high, double reduction,
                         const ReferenceNoise& noise, const Rule& rule) {
  ComparisonInput input;
  input.got = got.data_ptr();
  input.reference = reference.data_ptr();
  at::Tensor exact;
  if (high.defined() && (reference.is_floating_point() || reference.is_complex())) {
    exact = high.to(reference.is_complex() ? at::kComplexDouble : at::kDouble).contiguous();
    input.high = static_cast<const double*>(exact.data_ptr());
  }
  input.elements = reference.numel();
  input.type = wire::FindDType(ShortType(reference.scalar_type())).value();
  input.reduction = reduction;
  input.noise = noise;
  return Compare(input, rule);
}

}  // namespace

Comparison CompareTensors(const at::Tensor& got, const at::Tensor& reference, const at::Tensor& high, double reduction,
                          const ReferenceNoise& noise, const Rule& rule) {
  const at::Tensor host_high = high.defined() ? high.cpu().contiguous() : high;
  return CompareOnHost(got.cpu().contiguous(), reference.cpu().contiguous(), host_high, reduction, noise, rule);
}

}  // namespace grove::judge
