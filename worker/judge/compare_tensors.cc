// The comparison rule over tensors: in place on the CPU, with the device's own arithmetic on a GPU.
#include "worker/judge/compare_tensors.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "worker/judge/tensor_type.h"

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

// Elements at a time on the device: about ten float64 temporaries of 128 MiB.
constexpr std::int64_t kChunk = 1 << 24;

std::int64_t Count(const at::Tensor& mask) { return mask.sum().item<std::int64_t>(); }
double Largest(const at::Tensor& values) { return values.numel() > 0 ? values.max().item<double>() : 0; }

// Real parts side by side, as one long vector.
at::Tensor Flat(const at::Tensor& tensor) {
  return (tensor.is_complex() ? at::view_as_real(tensor) : tensor).reshape({-1});
}

// The same two passes as Compare, in torch's words.
Comparison CompareOnDevice(const at::Tensor& got_tensor, const at::Tensor& reference_tensor,
                           const at::Tensor& high_tensor, double reduction, const ReferenceNoise& noise,
                           const Rule& rule) {
  ComparisonInput input;
  input.elements = reference_tensor.numel();
  input.type = wire::FindDType(ShortType(reference_tensor.scalar_type())).value();
  input.reduction = reduction;
  input.noise = noise;
  const double present = 0;
  if (high_tensor.defined()) input.high = &present;  // only asked whether it is there
  const at::Tensor got_flat = Flat(got_tensor), reference_flat = Flat(reference_tensor);
  const at::Tensor high_flat = high_tensor.defined() ? Flat(high_tensor) : at::Tensor();
  const std::int64_t n = reference_flat.numel();
  auto part = [](const at::Tensor& tensor, std::int64_t begin, std::int64_t end) {
    return tensor.slice(0, begin, end).to(at::kDouble);
  };
  MagnitudeTally magnitude;
  for (std::int64_t begin = 0; begin < n; begin += kChunk) {
    const std::int64_t end = std::min(begin + kChunk, n);
    const at::Tensor reference = part(reference_flat, begin, end);
    const at::Tensor finite = at::isfinite(reference);
    at::Tensor expected = reference;
    if (high_flat.defined()) {
      const at::Tensor high = part(high_flat, begin, end);
      const at::Tensor usable = at::logical_and(finite, at::isfinite(high));
      expected = at::where(usable, high, reference);
      const at::Tensor error = at::where(usable, (reference - high).abs(), at::zeros_like(reference));
      magnitude.noise_squares += error.square().sum().item<double>();
      magnitude.noise_max = std::max(magnitude.noise_max, Largest(error));
      magnitude.outliers += Count(at::logical_and(usable, error > expected.abs() * kRelativeBound));
    }
    magnitude.finite += Count(finite);
    magnitude.squares += at::where(finite, expected, at::zeros_like(expected)).square().sum().item<double>();
  }
  Comparison result;
  const ScaledThresholds limits = LimitsFor(input, magnitude, &result);
  ErrorTally errors;
  double worst_excess = -1;
  for (std::int64_t begin = 0; begin < n; begin += kChunk) {
    const std::int64_t end = std::min(begin + kChunk, n);
    const at::Tensor reference = part(reference_flat, begin, end), got = part(got_flat, begin, end);
    const at::Tensor both = at::logical_and(at::isfinite(reference), at::isfinite(got));
    const at::Tensor zero = at::zeros_like(reference);
    const at::Tensor special = at::logical_and(
        at::logical_not(both),
        at::logical_not(at::logical_or(at::logical_and(at::isnan(reference), at::isnan(got)), reference == got)));
    at::Tensor expected = reference;
    if (high_flat.defined()) {
      const at::Tensor high = part(high_flat, begin, end);
      expected = at::where(at::isfinite(high), high, reference);
    }
    const at::Tensor size = at::where(both, reference.abs(), zero);
    const at::Tensor plain = at::where(both, (got - reference).abs(), zero);
    const at::Tensor error = at::where(both, (got - expected).abs(), zero);
    const at::Tensor magnitude_here = at::where(both, expected.abs(), zero);
    errors.special += Count(special);
    errors.beyond_1e4 += Count(plain > size * 1e-4 + 1e-4);
    errors.beyond_1e2 += Count(plain > size * 1e-2 + 1e-2);
    errors.max_abs = std::max(errors.max_abs, Largest(plain));
    errors.max_rel = std::max(errors.max_rel, Largest(at::where(size > 0, plain / size, zero)));
    errors.squares += error.square().sum().item<double>();
    errors.outliers += Count(error > magnitude_here * kRelativeBound);
    at::Tensor allowed = magnitude_here * limits.slack + limits.element;
    errors.beyond += Count(error > allowed);
    at::Tensor judged = error, wanted = expected;
    if (rule.mode == RuleMode::kAbsoluteRelative) {
      allowed = size * rule.rtol + rule.atol;
      judged = plain;
      wanted = reference;
      errors.beyond_given += Count(judged > allowed);
    }
    at::Tensor excess = judged / allowed.clamp_min(std::numeric_limits<double>::min());
    excess = at::where(special, at::full_like(excess, std::numeric_limits<double>::infinity()), excess);
    const std::int64_t at_worst = excess.argmax().item<std::int64_t>();
    const double here = excess[at_worst].item<double>();
    if (here > 0 && here > worst_excess) {
      worst_excess = here;
      errors.worst = begin + at_worst;
      errors.expected = wanted[at_worst].item<double>();
      errors.got = got[at_worst].item<double>();
      errors.error = std::fabs(errors.got - errors.expected);
      errors.allowed = std::isinf(here) ? 0 : allowed[at_worst].item<double>();
    }
  }
  Decide(input, rule, magnitude, limits, errors, &result);
  return result;
}

}  // namespace

Comparison CompareTensors(const at::Tensor& got, const at::Tensor& reference, const at::Tensor& high, double reduction,
                          const ReferenceNoise& noise, const Rule& rule) {
  if (reference.is_cuda() && reference.numel() > kHostElements &&
      (reference.is_floating_point() || reference.is_complex())) {
    return CompareOnDevice(got, reference, high, reduction, noise, rule);
  }
  const at::Tensor host_high = high.defined() ? high.cpu().contiguous() : high;
  return CompareOnHost(got.cpu().contiguous(), reference.cpu().contiguous(), host_high, reduction, noise, rule);
}

}  // namespace grove::judge
