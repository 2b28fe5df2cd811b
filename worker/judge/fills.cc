#include "worker/judge/fills.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <exception>
#include <utility>

#include "worker/judge/tensor_type.h"

namespace grove::judge {

at::Tensor Fills(const at::Tensor& high) try {
  constexpr double kLeast = 1e3, kSpread = 0x1p-10, kGap = 0x1p-8;
  constexpr std::int64_t kFewest = 16, kSeveral = 2;  // others, and fills
  constexpr std::int64_t kMost = std::int64_t{1} << 26;
  if (!high.defined() || !high.is_floating_point() || high.numel() < kFewest || high.numel() > kMost) return {};
  const auto [lowest, highest] = at::aminmax(high);
  const double most = std::max(-lowest.item<double>(), highest.item<double>());
  if (!(most >= kLeast) || !std::isfinite(most)) return {};
  // All of them about the same (logarithms of probabilities are off by one sum), and far from all others.
  const at::Tensor sizes = high.abs(), fills = sizes.ge(most * (1 - kSpread));
  const auto count = fills.sum().item<std::int64_t>();
  const bool apart = sizes.masked_fill(fills, 0).max().item<double>() <= kGap * most;
  return apart && count >= kSeveral && fills.numel() - count >= kFewest ? fills : at::Tensor();
} catch (const std::exception&) {  // no memory to look
  return {};
}

bool HasFills(const std::vector<at::Tensor>& high) {
  return std::any_of(high.begin(), high.end(), [](const at::Tensor& one) { return Fills(one).defined(); });
}

Comparison BesideFills(const ComparedTensors& tensors, bool continuous, Comparison compared, const Rule& rule,
                       const std::function<at::Tensor()>& rounding) {
  constexpr std::int64_t kFew = 16;
  if (!compared.ok || compared.excused || compared.undecided || rule.mode != RuleMode::kScaled || rule.any_order ||
      !tensors.high.defined() || !tensors.nudged.defined()) {
    return compared;
  }
  const at::Tensor fills = Fills(tensors.high);
  if (!fills.defined()) return compared;
  Comparison others;
  try {
    const at::Tensor positions = fills.logical_not().reshape({-1}).nonzero().reshape({-1});
    ComparedTensors beside = tensors;
    for (at::Tensor* one : {&beside.got, &beside.reference, &beside.high, &beside.nudged, &beside.wide}) {
      if (one->defined()) *one = one->reshape({-1}).index_select(0, positions);
    }
    beside.own_error = 0;  // it is that of the fills
    others = CompareTensors(beside, rule);
    if (others.ok || others.undecided || (!continuous && others.mismatched <= kFew)) return compared;
    // Nobody is condemned by them without it.
    const at::Tensor inside = rounding();
    if (!inside.defined()) return compared;
    const at::Tensor errors = inside.reshape({-1}).index_select(0, positions);
    const at::Tensor known = errors.masked_select(at::isfinite(errors));
    if (known.numel() == 0) return compared;
    others = CompareWithErrors(beside, std::sqrt(known.square().mean().item<double>()), std::move(others), rule);
    if (others.ok || others.undecided) return compared;
    if (others.worst >= 0) others.worst = positions[others.worst].item<std::int64_t>();
  } catch (const std::exception&) {  // no memory to look
    return compared;
  }
  others.noise = compared.noise;
  others.why = "beside numbers that stand for nothing, " + others.why;
  return others;
}

}  // namespace grove::judge
