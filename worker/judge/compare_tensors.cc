// The comparison rule over tensors: in place on the CPU, with the device's own arithmetic on a GPU.
#include "worker/judge/compare_tensors.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "worker/judge/tensor_type.h"

namespace grove::judge {
namespace {

// Below this many elements a copy to the host costs less than the launches of the device path.
constexpr std::int64_t kHostElements = 1 << 16;

bool Fractions(const at::Tensor& tensor) { return tensor.is_floating_point() || tensor.is_complex(); }

// Elements at a time on the device: about ten float64 temporaries of 128 MiB.
constexpr std::int64_t kChunk = 1 << 24;

std::int64_t Count(const at::Tensor& mask) { return mask.sum().item<std::int64_t>(); }

// The share of elements that jump in a nudge of kNudge, from the count of a larger one: thresholds are crossed in
// proportion. 0 where memory does not suffice to count.
double WideJumps(const ComparedTensors& tensors) {
  const at::Tensor& reference = tensors.reference;
  if (!tensors.wide.defined() || !tensors.high.defined() || reference.numel() == 0 || reference.is_complex()) return 0;
  try {
    const at::Tensor wide = tensors.wide.reshape({-1}), high = tensors.high.reshape({-1});
    const std::int64_t n = high.numel();
    if (!Fractions(reference)) {
      return static_cast<double>(Count(wide.ne(high))) / static_cast<double>(n) * (kNudge / kWideNudge);
    }
    // A program that fixes its types gives half precision here too, which not every operation knows on a CPU.
    auto part = [](const at::Tensor& tensor, std::int64_t begin) {
      return tensor.slice(0, begin, begin + kChunk).to(at::kDouble);
    };
    MagnitudeTally magnitude;
    for (std::int64_t begin = 0; begin < n; begin += kChunk) {
      const at::Tensor values = part(high, begin), finite = at::isfinite(values);
      magnitude.finite += Count(finite);
      magnitude.squares += values.masked_fill(finite.logical_not(), 0).square().sum().item<double>();
    }
    std::int64_t jumps = 0;
    for (std::int64_t begin = 0; begin < n; begin += kChunk) {
      jumps += Count((part(wide, begin) - part(high, begin)).abs() > JumpSize(magnitude));  // of NaN: false
    }
    return static_cast<double>(jumps) / static_cast<double>(n) * (kNudge / kWideNudge);
  } catch (const std::exception&) {
    return 0;
  }
}

Comparison CompareOnHost(const ComparedTensors& tensors, const Rule& rule) {
  ComparisonInput input;
  const at::Tensor reference = tensors.reference.cpu().contiguous();
  at::Tensor got;
  if (tensors.got.defined()) {
    got = tensors.got.cpu().contiguous();
    input.got = got.data_ptr();
  }
  input.reference = reference.data_ptr();
  at::Tensor high, nudged;
  if (tensors.high.defined() && Fractions(reference)) {
    auto wide = [&reference](const at::Tensor& tensor) {
      return tensor.cpu().to(reference.is_complex() ? at::kComplexDouble : at::kDouble).contiguous();
    };
    high = wide(tensors.high);
    input.high = static_cast<const double*>(high.data_ptr());
    if (tensors.nudged.defined()) {
      nudged = wide(tensors.nudged);
      input.nudged = static_cast<const double*>(nudged.data_ptr());
    }
  }
  input.elements = reference.numel();
  input.type = wire::FindDType(ShortType(reference.scalar_type())).value();
  input.reduction = tensors.reduction;
  input.noise = tensors.noise;
  input.jumps = WideJumps(tensors);
  if (!Fractions(reference) && tensors.nudged.defined() && reference.numel() > 0) {
    const auto jumps = tensors.nudged.ne(tensors.high).sum().item<std::int64_t>();
    const double share = static_cast<double>(jumps) / static_cast<double>(reference.numel());
    input.noise.known = true;
    input.noise.unstable = std::max(share, input.jumps);
    input.noise.ties = 0;
    if (tensors.wide.defined()) {
      // share = ties + slope, and a nudge `times` as large gives ties + times slope.
      const double times = kWideNudge / kNudge;
      input.noise.unstable = std::max(0.0, (input.jumps * times - share) / (times - 1));
      input.noise.ties = std::max(0.0, share - input.noise.unstable);
    }
  }
  return Compare(input, rule);
}

double Largest(const at::Tensor& values) { return values.numel() > 0 ? values.max().item<double>() : 0; }

// Real parts side by side, as one long vector.
at::Tensor Flat(const at::Tensor& tensor) {
  return (tensor.is_complex() ? at::view_as_real(tensor) : tensor).reshape({-1});
}

// Sums over blocks of kNeighbours neighbours; zeros fill the last one.
at::Tensor BlockSums(const at::Tensor& values) {
  const std::int64_t n = values.numel(), blocks = (n + kNeighbours - 1) / kNeighbours;
  return (n % kNeighbours == 0 ? values : at::constant_pad_nd(values, {0, blocks * kNeighbours - n}))
      .view({blocks, kNeighbours})
      .sum(1);
}

// The same passes as Compare, in torch's words.
Comparison CompareOnDevice(const ComparedTensors& tensors, const Rule& rule) {
  ComparisonInput input;
  input.elements = tensors.reference.numel();
  input.type = wire::FindDType(ShortType(tensors.reference.scalar_type())).value();
  input.reduction = tensors.reduction;
  input.noise = tensors.noise;
  const double present = 0;
  if (tensors.high.defined()) input.high = &present;  // only asked whether it is there
  if (tensors.nudged.defined()) input.nudged = &present;
  input.jumps = WideJumps(tensors);
  const at::Tensor got_flat = tensors.got.defined() ? Flat(tensors.got) : at::Tensor(),
                   reference_flat = Flat(tensors.reference);
  const at::Tensor high_flat = tensors.high.defined() ? Flat(tensors.high) : at::Tensor();
  const at::Tensor nudged_flat = tensors.nudged.defined() ? Flat(tensors.nudged) : at::Tensor();
  const std::int64_t n = reference_flat.numel();
  const double bound = RelativeBound(rule), tiny = TinyOf(input.type);
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
      magnitude.outliers +=
          Count(at::logical_and(at::logical_and(usable, expected.abs() >= tiny), error > expected.abs() * bound));
    }
    magnitude.finite += Count(finite);
    magnitude.squares += at::where(finite, expected, at::zeros_like(expected)).square().sum().item<double>();
  }
  ResponseTally response;
  for (std::int64_t begin = 0; begin < n && nudged_flat.defined(); begin += kChunk) {
    const std::int64_t end = std::min(begin + kChunk, n);
    const at::Tensor moved = (part(nudged_flat, begin, end) - part(high_flat, begin, end)).abs();
    const at::Tensor usable = at::logical_and(at::isfinite(moved), at::isfinite(part(reference_flat, begin, end)));
    const at::Tensor jumps = at::logical_and(usable, moved > JumpSize(magnitude));
    const at::Tensor slopes = at::where(at::logical_and(usable, at::logical_not(jumps)), moved, at::zeros_like(moved));
    response.jumps += Count(jumps);
    response.squares += slopes.square().sum().item<double>();
    response.max = std::max(response.max, Largest(slopes));
  }
  Comparison result;
  const ScaledThresholds limits = LimitsFor(input, rule, magnitude, response, &result);
  if (!tensors.got.defined()) return result;
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
    errors.outliers += Count(at::logical_and(error > magnitude_here * bound, magnitude_here >= tiny));
    at::Tensor allowed = magnitude_here * limits.slack + limits.element;
    const at::Tensor beyond = error > allowed;
    errors.beyond += Count(beyond);
    errors.beyond_squares += at::where(beyond, error, zero).square().sum().item<double>();
    if (limits.block > 0) {
      const at::Tensor high = part(high_flat, begin, end), nudged = part(nudged_flat, begin, end);
      const at::Tensor counts = at::logical_and(at::logical_and(both, at::logical_not(beyond)), at::isfinite(nudged));
      auto sums = [&](const at::Tensor& values) { return BlockSums(at::where(counts, values, zero).square()); };
      const at::Tensor elements = BlockSums(counts.to(at::kDouble)).clamp_min(1);
      const at::Tensor scale =
          at::maximum((sums(expected) / elements).sqrt(), (sums(nudged - high) / elements).sqrt() / kNudge) *
          limits.block;
      const at::Tensor noise = (sums(reference - expected) / elements).sqrt() * kBlockNoise;
      errors.blocks += Count((sums(error) / elements).sqrt() > at::maximum(scale, noise).clamp_min(limits.block_floor));
    }
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

bool Stepped(const at::Tensor& output) {
  if (output.numel() == 0) return false;
  if (!Fractions(output)) return true;
  if (output.is_complex()) return false;
  // Zeros alone are a rectifier's, which does not jump.
  constexpr std::int64_t kSample = 1 << 14;
  const std::int64_t step = std::max<std::int64_t>(output.numel() / kSample, 1);
  const at::Tensor sample = output.reshape({-1}).slice(0, 0, output.numel(), step).to(at::kCPU).to(at::kDouble);
  const at::Tensor some = sample.masked_select(sample.ne(0));
  return some.numel() >= 64 && std::get<0>(at::_unique(some)).numel() < some.numel() / 2;
}

Comparison CompareTensors(const ComparedTensors& tensors, const Rule& rule) {
  if (tensors.reference.is_cuda() && tensors.reference.numel() > kHostElements && Fractions(tensors.reference)) {
    return CompareOnDevice(tensors, rule);
  }
  return CompareOnHost(tensors, rule);
}

bool AllFinite(const std::vector<at::Tensor>& tensors) {
  for (const at::Tensor& tensor : tensors) {
    if ((tensor.is_floating_point() || tensor.is_complex()) && !at::isfinite(tensor).all().item<bool>()) return false;
  }
  return true;
}

}  // namespace grove::judge
