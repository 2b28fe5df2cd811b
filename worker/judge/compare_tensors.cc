// The comparison rule over tensors: in place on the CPU, by kernels on a GPU.
#include "worker/judge/compare_tensors.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <optional>
#include <tuple>

#include "worker/judge/compare_gpu.h"
#include "worker/judge/tensor_type.h"

namespace grove::judge {
namespace {

// Below this many elements a copy to the host costs no more than the launches of the device path.
constexpr std::int64_t kHostElements = 1 << 16;

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

// Whether all of a float64 output is what float32 holds: then it was made from float32. Not of whole numbers.
bool Single(const at::Tensor& reference) {
  const at::ScalarType type = reference.scalar_type();
  if ((type != at::kDouble && type != at::kComplexDouble) || reference.numel() == 0) return false;
  const at::Tensor flat = (reference.is_complex() ? at::view_as_real(reference) : reference).reshape({-1});
  bool whole = true;
  for (std::int64_t begin = 0; begin < flat.numel(); begin += kChunk) {
    const at::Tensor part = flat.slice(0, begin, begin + kChunk), values = part.masked_select(at::isfinite(part));
    if (Count(values.ne(values.to(at::kFloat).to(at::kDouble))) > 0) return false;
    whole = whole && Count(values.ne(values.round())) == 0;
  }
  return !whole;
}

// What stands for infinity (a mask filled with the least number of its type) is one in all of them: it has to be met,
// and is no measure for the other elements. A float64 evaluation has the least number of its own type there.
void MakeInfinite(ComparedTensors* tensors) {
  const at::Tensor reference = tensors->reference;
  if (reference.is_complex()) return;
  const double extreme = Extreme(reference.scalar_type());
  const bool half = extreme < 0x1p17 || reference.scalar_type() == at::kBFloat16;  // which not every operation knows
  const auto [least, most] = at::aminmax(half ? reference.to(at::kFloat) : reference);
  // (Of NaN: goes on.)
  if (least.item<double>() > -extreme && most.item<double>() < extreme) return;
  at::Tensor there = reference.abs().ge(extreme).logical_and_(at::isfinite(reference));
  if (tensors->high.defined() && tensors->high.sizes() == reference.sizes()) {
    there.logical_and_(tensors->high.abs().lt(extreme).logical_not_());  // a result that rounds to it is a number
  }
  if (Count(there) == 0) return;
  const at::Tensor infinite = reference.sign().to(at::kDouble) * std::numeric_limits<double>::infinity();
  const auto put = [&](at::Tensor* tensor, const at::Tensor& where) {
    if (!tensor->defined() || tensor->sizes() != reference.sizes()) return;
    *tensor = at::where(where, infinite.to(tensor->scalar_type()), *tensor);
  };
  if (tensors->got.defined()) {
    const at::Tensor met = tensors->got.eq(reference);
    // (An infinity in its place is not it.)
    tensors->got = tensors->got.masked_fill(there.logical_and(at::isinf(tensors->got)), std::nan(""));
    put(&tensors->got, there.logical_and(met));
  }
  for (at::Tensor* tensor : {&tensors->reference, &tensors->high, &tensors->nudged, &tensors->wide}) put(tensor, there);
}

// Squares of float64 overflow from some 1e154 on, and vanish below 1e-162: a power of two that brings the largest near
// 1. 1 where none is needed.
double ScaleOf(const at::Tensor& reference) {
  if (reference.scalar_type() != at::kDouble) return 1;
  constexpr double kLarge = 1e140, kSmall = 1e-120;
  const at::Tensor sizes = reference.abs();
  const double largest = sizes.masked_fill(at::isfinite(sizes).logical_not(), 0).max().item<double>();
  if (!(largest > 0) || (largest < kLarge && largest > kSmall)) return 1;
  return std::ldexp(1.0, std::min(-std::ilogb(largest), 1000));
}

// The rms of what the exact values lose by being rounded to their type, a half one. Negative where there are so few
// different ones that another program's roundings need not be alike.
double OwnRounding(const ComparedTensors& tensors) {
  constexpr std::int64_t kSample = 1 << 14, kDifferent = 256;
  const at::Tensor& reference = tensors.reference;
  if (!IsHalf(reference.scalar_type()) || !tensors.high.defined() || tensors.high.sizes() != reference.sizes()) {
    return -1;
  }
  try {
    const at::Tensor high = tensors.high.reshape({-1});
    at::Tensor some = high.slice(0, 0, kChunk).to(at::kDouble);
    some = some.masked_select(some.ne(0).logical_and(at::isfinite(some)));
    const std::int64_t step = std::max<std::int64_t>(some.numel() / kSample, 1);
    some = some.slice(0, 0, some.numel(), step).to(at::kCPU);
    if (some.numel() < kDifferent || std::get<0>(at::_unique(some)).numel() < kDifferent) return -1;
    double squares = 0;
    std::int64_t known = 0;
    for (std::int64_t begin = 0; begin < high.numel(); begin += kChunk) {
      const at::Tensor values = high.slice(0, begin, begin + kChunk).to(at::kDouble);
      const at::Tensor lost = (values.to(reference.scalar_type()).to(at::kDouble) - values).abs();
      const at::Tensor finite = at::isfinite(lost);
      known += Count(finite);
      squares += lost.masked_fill(finite.logical_not(), 0).square().sum().item<double>();
    }
    return std::sqrt(squares / static_cast<double>(std::max<std::int64_t>(known, 1)));
  } catch (const std::exception&) {
    return -1;  // no memory for it
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
  input.noise.single = Single(tensors.reference);
  input.jumps = std::max(WideJumps(tensors), tensors.jumps);
  input.own_error = tensors.own_error;
  if (rule.one_term) input.own_rounding = OwnRounding(tensors);
  at::Tensor turned;
  if (!Fractions(reference) && tensors.nudged.defined() && reference.numel() > 0) {
    const auto jumps = tensors.nudged.ne(tensors.high).sum().item<std::int64_t>();
    const double share = static_cast<double>(jumps) / static_cast<double>(reference.numel());
    input.noise.known = true;
    input.noise.unstable = std::max(share, input.jumps);
    if (tensors.wide.defined()) {
      // share = a part of the ties + slope, and a nudge `times` as large gives that part + times slope.
      const double times = kWideNudge / kNudge;
      input.noise.unstable = std::max(0.0, (input.jumps * times - share) / (times - 1));
      const bool counted = tensors.turned.defined();
      if (counted) {
        turned = tensors.turned.cpu().contiguous();
        input.turned = turned.data_ptr<bool>();
        input.turns = tensors.turns;
      }
      const double ties = counted
                              ? TieShare(static_cast<double>(Count(turned)) / static_cast<double>(reference.numel()),
                                         tensors.turns, input.noise.unstable)
                              : TieShare(share, 1, input.noise.unstable);
      input.noise.ties = std::max(input.noise.ties, ties);  // some draws have more than others
    }
    input.noise.unstable = std::max(input.noise.unstable, tensors.jumps);
  }
  return Compare(input, rule);
}

// Real parts side by side, as one long vector.
at::Tensor Flat(const at::Tensor& tensor) {
  return (tensor.is_complex() ? at::view_as_real(tensor) : tensor).reshape({-1}).contiguous();
}

Comparison CompareOnDevice(const ComparedTensors& tensors, const Rule& rule) {
  ComparisonInput input;
  input.elements = tensors.reference.numel();
  input.type = wire::FindDType(ShortType(tensors.reference.scalar_type())).value();
  input.reduction = tensors.reduction;
  input.noise = tensors.noise;
  input.noise.single = Single(tensors.reference);
  input.jumps = std::max(WideJumps(tensors), tensors.jumps);
  input.own_error = tensors.own_error;
  if (rule.one_term) input.own_rounding = OwnRounding(tensors);
  const at::Tensor reference = Flat(tensors.reference);
  at::Tensor got, high, nudged;
  input.reference = reference.data_ptr();
  if (tensors.got.defined()) {
    got = Flat(tensors.got);
    input.got = got.data_ptr();
  }
  // Of another size (a real one of a complex reference) it says nothing.
  const auto wide = [&reference](const at::Tensor& tensor) {
    if (!tensor.defined()) return at::Tensor();
    const at::Tensor flat = Flat(tensor);
    return flat.numel() == reference.numel() ? flat.to(at::kDouble) : at::Tensor();
  };
  high = wide(tensors.high);
  nudged = high.defined() ? wide(tensors.nudged) : at::Tensor();
  if (high.defined()) input.high = static_cast<const double*>(high.data_ptr());
  if (nudged.defined()) input.nudged = static_cast<const double*>(nudged.data_ptr());
  return CompareOnGpu(input, rule);
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

double JumpsBeyond(const at::Tensor& high, const at::Tensor& nudged, const at::Tensor& moved, double size,
                   const at::Tensor& less) {
  if (!Fractions(high)) return high.sizes() == moved.sizes() ? static_cast<double>(Count(moved.ne(high))) : 0;
  // Twice as far as any element would go on to.
  constexpr double kFurther = 2, kLess = 8;
  const auto real = [](const at::Tensor& tensor) {
    return (tensor.is_complex() ? at::view_as_real(tensor) : tensor).reshape({-1});
  };
  const at::Tensor from = real(high), by_one = real(nudged), by_more = real(moved);
  const std::int64_t n = from.numel();
  if (n == 0 || by_one.numel() != n || by_more.numel() != n) return 0;
  const at::Tensor by_less = less.defined() && less.sizes() == moved.sizes() ? real(less) : at::Tensor();
  const auto part = [](const at::Tensor& tensor, std::int64_t begin) {
    return tensor.slice(0, begin, begin + kChunk).to(at::kDouble);
  };
  MagnitudeTally magnitude;
  for (std::int64_t begin = 0; begin < n; begin += kChunk) {
    const at::Tensor values = part(from, begin), finite = at::isfinite(values);
    magnitude.finite += Count(finite);
    magnitude.squares += values.masked_fill(finite.logical_not(), 0).square().sum().item<double>();
  }
  const double jump = JumpSize(magnitude);
  double slope = 0;
  for (std::int64_t begin = 0; begin < n; begin += kChunk) {
    at::Tensor step = (part(by_one, begin) - part(from, begin)).abs();
    step = step.masked_fill(step.le(jump).logical_not(), 0);  // jumps, and what is no number
    slope = std::max(slope, step.max().item<double>());
  }
  const double far = std::max(jump, kFurther * slope * size / kNudge);
  std::int64_t jumps = 0;
  for (std::int64_t begin = 0; begin < n; begin += kChunk) {
    const at::Tensor step = (part(by_more, begin) - part(from, begin)).abs();
    at::Tensor jumped = step.gt(far);  // of NaN: false
    if (by_less.defined()) {
      // It goes on as it began: two elements that cancelled in the nudge, and do not here, have a slope all the same.
      const at::Tensor begun = (part(by_less, begin) - part(from, begin)).abs();
      const at::Tensor sloped = step.le(begun * (kFurther * kLess)).logical_and(begun.le(step * 0.5));
      jumped = jumped.logical_and(sloped.logical_not());
    }
    jumps += Count(jumped);
  }
  return static_cast<double>(jumps);
}

at::Tensor Alike(const at::Tensor& values, const at::Tensor& wanted, const at::Tensor& allowed, at::ScalarType type) {
  const at::Tensor one = values.to(type).to(at::kDouble), other = wanted.to(type).to(at::kDouble);
  const at::Tensor near = (values - wanted).abs().le(allowed);
  return near.logical_and(at::isfinite(one)).logical_and(at::isfinite(other)).logical_or(one.eq(other));
}

double Extreme(at::ScalarType type) {
  switch (at::isComplexType(type) ? at::toRealValueType(type) : type) {
    case at::kHalf:
      return 65504;
    case at::kBFloat16:
      return 0x1.fep127;
    case at::kFloat:
      return static_cast<double>(std::numeric_limits<float>::max());
    default:
      return std::numeric_limits<double>::max();
  }
}

namespace {

Comparison CompareAsTheyLie(const ComparedTensors& given, const Rule& asked) {
  ComparedTensors tensors = given;
  Rule rule = asked;
  const bool fractions = Fractions(tensors.reference) && tensors.reference.numel() > 0;
  if (fractions) MakeInfinite(&tensors);
  const double scale = fractions && asked.mode == RuleMode::kScaled ? ScaleOf(tensors.reference) : 1;
  if (scale != 1) {
    for (at::Tensor* tensor : {&tensors.got, &tensors.reference, &tensors.high, &tensors.nudged, &tensors.wide}) {
      if (tensor->defined()) *tensor = *tensor * scale;
    }
    rule.unit *= scale;
    tensors.own_error *= scale;
  }
  const bool on_device = tensors.reference.is_cuda() && tensors.reference.numel() > kHostElements && fractions;
  Comparison compared = on_device ? CompareOnDevice(tensors, rule) : CompareOnHost(tensors, rule);
  for (double* figure : {&compared.rms, &compared.expected, &compared.got, &compared.error, &compared.allowed,
                         &compared.max_abs_error}) {
    *figure /= scale;
  }
  return compared;
}

// The same output by its columns: in the order of memory those of a small one have large neighbours. Nothing where
// there are too few rows for a block of one column, or too many columns for one of them to be more than the few
// elements that rounding may have otherwise, or where going through all of it once more would take long.
std::optional<ComparedTensors> ByColumns(const ComparedTensors& tensors) {
  constexpr std::int64_t kMostColumns = 4096, kMostElements = std::int64_t{1} << 22;
  const at::Tensor& like = tensors.reference;
  if (!tensors.got.defined() || !tensors.high.defined() || !tensors.nudged.defined() || like.dim() < 2 ||
      !Fractions(like) || like.is_complex() || like.numel() > kMostElements) {
    return std::nullopt;
  }
  const std::int64_t columns = like.size(-1), rows = columns > 0 ? like.numel() / columns : 0;
  if (columns < 2 || columns > kMostColumns || rows < kNeighbours) return std::nullopt;
  ComparedTensors turned = tensors;
  turned.wide = turned.turned = at::Tensor();
  for (at::Tensor* one : {&turned.got, &turned.reference, &turned.high, &turned.nudged}) {
    const at::Tensor all = one->reshape({rows, columns}), whole = all.narrow(0, 0, rows - rows % kNeighbours);
    // The last rows once more, rather than never.
    *one = (rows % kNeighbours == 0 ? whole : at::cat({whole, all.narrow(0, rows - kNeighbours, kNeighbours)}))
               .t()
               .contiguous();
  }
  return turned;
}

}  // namespace

Comparison CompareTensors(const ComparedTensors& tensors, const Rule& rule) {
  Comparison compared = CompareAsTheyLie(tensors, rule);
  if (!compared.ok || compared.undecided || compared.jumps > 0 || rule.mode != RuleMode::kScaled) return compared;
  const std::optional<ComparedTensors> turned = ByColumns(tensors);
  if (!turned) return compared;
  const Comparison by_columns = CompareAsTheyLie(*turned, rule);
  if (!by_columns.ok && by_columns.only_blocks) {
    compared.ok = compared.passes_scaled = false;
    compared.mismatched = by_columns.mismatched;
    compared.why = "by columns, " + by_columns.why;
  }
  return compared;
}

Comparison CompareWithErrors(ComparedTensors tensors, double size, Comparison compared, const Rule& rule) {
  size *= FewElements(static_cast<double>(tensors.reference.numel()));
  if (!(size > tensors.own_error) || !std::isfinite(size)) return compared;
  tensors.own_error = size;
  Rule uncapped = rule;
  uncapped.cap = 0;  // where that is more than the output, these values say nothing of it
  Comparison others = CompareTensors(tensors, uncapped);
  if (!others.ok) return compared;
  others.noise = compared.noise;
  return others;
}

bool AllFinite(const std::vector<at::Tensor>& tensors) {
  for (const at::Tensor& tensor : tensors) {
    if (Fractions(tensor) && !at::isfinite(tensor).all().item<bool>()) return false;
  }
  return true;
}

std::vector<at::Tensor> Finite(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> finite;
  for (const at::Tensor& tensor : tensors) finite.push_back(Fractions(tensor) ? at::isfinite(tensor) : at::Tensor());
  return finite;
}

bool FiniteThere(const std::vector<at::Tensor>& tensors, const std::vector<at::Tensor>& finite) {
  if (finite.size() != tensors.size()) return false;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!finite[i].defined()) continue;
    if (finite[i].sizes() != tensors[i].sizes()) return false;
    if (at::isfinite(tensors[i]).logical_and(finite[i].logical_not()).any().item<bool>()) return false;
  }
  return true;
}

}  // namespace grove::judge
