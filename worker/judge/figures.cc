#include "worker/judge/figures.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <numeric>
#include <utility>

#include "worker/judge/tensor_type.h"

namespace grove::judge {

bool AreFigures(const wire::DType& type, std::int64_t elements) {
  constexpr std::int64_t kFew = 64;
  return type.kind == wire::DTypeKind::kFloat && type.bits == 32 && elements >= 2 && elements <= kFew;
}

bool HasFigures(const Slot& slot) {
  return std::any_of(slot.out.places.begin(), slot.out.places.end(), [](const Place& place) {
    const std::int64_t elements =
        std::accumulate(place.shape.begin(), place.shape.end(), std::int64_t{1}, std::multiplies<>());
    return AreFigures(place.type, elements);
  });
}

Comparison EachFigure(const ComparedTensors& tensors, Comparison compared, const Rule& rule,
                      const std::function<at::Tensor()>& rounding) {
  constexpr double kSmall = 1.0 / 8;  // of the rms
  const at::Tensor& reference = tensors.reference;
  if (!compared.ok || compared.excused || compared.undecided || rule.mode != RuleMode::kScaled || rule.any_order ||
      rule.reduced > 0 || reference.is_complex() || !tensors.high.defined() || !tensors.nudged.defined()) {
    return compared;
  }
  const wire::DType type = wire::FindDType(ShortType(reference.scalar_type())).value();
  if (!AreFigures(type, reference.numel())) return compared;
  const double least = TinyOf(type);
  const auto compared_of = [](ComparedTensors* one) {
    return std::array{&one->got, &one->reference, &one->high, &one->nudged, &one->wide};
  };
  ComparedTensors flat = tensors;
  for (at::Tensor* tensor : compared_of(&flat)) {
    if (tensor->defined()) *tensor = tensor->reshape({-1}).to(at::kCPU);
  }
  for (std::int64_t i = 0; i < reference.numel(); ++i) {
    ComparedTensors single = flat;
    for (at::Tensor* tensor : compared_of(&single)) {
      if (tensor->defined()) *tensor = tensor->narrow(0, i, 1).clone();
    }
    const double size = single.high.abs().item<double>();
    if (!(size >= least && size < kSmall * compared.rms)) continue;
    // A share of elements above a threshold is a number, too, and no nudge says what rounding does to it.
    if (single.nudged.equal(single.high)) continue;
    Comparison alone = CompareTensors(single, rule);
    if (alone.ok || alone.undecided) continue;
    // Nobody is condemned by one number without it.
    const at::Tensor inside = rounding();
    if (!inside.defined()) return compared;
    const double error = inside.reshape({-1})[i].item<double>();
    if (!std::isfinite(error)) continue;
    alone = CompareWithErrors(single, error, std::move(alone), rule);
    if (alone.ok || alone.undecided) continue;
    Comparison wrong = compared;
    wrong.ok = wrong.passes_scaled = false;
    char text[200];
    std::snprintf(text, sizeof text,
                  "a number that is small beside the others is off by %.3g of itself, and %.3g is allowed",
                  alone.scaled_error, alone.scaled_allowed);
    wrong.why = text;
    wrong.mismatched = 1;
    wrong.worst = i;
    wrong.expected = alone.expected;
    wrong.got = alone.got;
    wrong.error = alone.error;
    wrong.allowed = alone.allowed;
    return wrong;
  }
  return compared;
}

}  // namespace grove::judge
