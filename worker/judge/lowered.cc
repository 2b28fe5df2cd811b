#include "worker/judge/lowered.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <utility>

#include "worker/judge/tensor_type.h"

namespace grove::judge {
namespace {

constexpr std::int64_t kFewest = 512, kMost = std::int64_t{1} << 20;  // elements that are looked at
constexpr std::int64_t kParts = 4;
constexpr double kShare = 0.5, kLargestShare = 2, kShareOfPart = 0.2;
constexpr double kCorrelation = 0.15, kSigmas = 7;  // honest errors have 1 / sqrt(elements), of either sign
constexpr double kOwnShare = 0.5;                   // of the candidate's, that the reference's own errors may have

struct Format {
  const char* how;
  int bits;  // of a float32's fraction that go
  bool nearest;
};
constexpr Format kFormats[] = {{"rounded to the 10 bits of half precision and TF32", 13, true},
                               {"cut to the 10 bits of TF32", 13, false},
                               {"rounded to the 7 bits of bfloat16", 16, true}};

at::Tensor Some(const at::Tensor& all) {
  const at::Tensor flat = all.reshape({-1});
  return flat.narrow(0, 0, std::min(flat.numel(), kMost));
}

// Whether its values are different ones, most of them with bits that half precision and TF32 do not have.
bool UsesItsBits(const at::Tensor& value) {
  constexpr double kMost = 0.9, kSpread = 1.0 / 32;
  constexpr std::int64_t kLost = (std::int64_t{1} << 13) - 1;
  const at::Tensor dense = Some(value);
  if (dense.view(at::kInt).bitwise_and(kLost).ne(0).to(at::kFloat).mean().item<double>() < kMost) return false;
  const at::Tensor wide = dense.to(at::kDouble);
  const double rms = wide.square().mean().sqrt().item<double>();
  return wide.std(/*unbiased=*/false).item<double>() > kSpread * rms;
}

std::vector<Leaf> Rounded(const std::vector<Leaf>& leaves, std::size_t factor, const Format& format) {
  std::vector<Leaf> rounded = leaves;
  Leaf& leaf = rounded[factor];
  const std::int64_t step = std::int64_t{1} << format.bits;
  const at::Tensor bits = leaf.tensor.view(at::kInt) + (format.nearest ? step / 2 : 0);
  const at::Tensor made = bits.bitwise_and(-step).view(at::kFloat);
  leaf.tensor = at::where(at::isfinite(made).logical_and(at::isfinite(leaf.tensor)), made, leaf.tensor);
  return rounded;
}

// Errors as they are compared: without their mean, and without what they have of the result itself, which a constant
// that is a little off gives every element.
struct Plane {
  explicit Plane(const at::Tensor& result) : direction(result - result.mean()) {
    const double length = direction.square().sum().sqrt().item<double>();
    direction = length > 0 ? direction / length : at::zeros_like(direction);
  }
  at::Tensor Without(const at::Tensor& errors) const {
    const at::Tensor centred = errors - errors.mean();
    return centred - direction * (centred * direction).sum();
  }
  at::Tensor direction;
};

double Sum(const at::Tensor& products) { return products.sum().item<double>(); }

// The least share of the marks that errors have in any part of the output, of parts that lie together and of such that
// lie apart.
double LeastShareOfParts(const at::Tensor& errors, const at::Tensor& marks) {
  const std::int64_t length = errors.numel() / kParts;
  const at::Tensor products = (errors * marks).narrow(0, 0, length * kParts),
                   squares = marks.square().narrow(0, 0, length * kParts);
  double least = 1;
  for (const auto& [shape, along] : {std::pair{std::vector<std::int64_t>{kParts, length}, std::int64_t{1}},
                                     std::pair{std::vector<std::int64_t>{length, kParts}, std::int64_t{0}}}) {
    const at::Tensor shares = products.view(shape).sum(along) / squares.view(shape).sum(along);
    least = std::min(least, shares.min().item<double>());  // NaN, of a part without marks, is least
    if (!at::isfinite(shares).all().item<bool>()) return 0;
  }
  return least;
}

}  // namespace

bool MayShowLowering(const LoadedProblem& problem, const std::vector<Leaf>& leaves) {
  bool any = false;
  for (const auto& factors : problem.float_factors) any = any || !factors.empty();
  if (!any) return false;
  const auto plain = [](const at::Tensor& value) {
    if (value.dim() < 2 || value.numel() == 0 || !Fractions(value)) return true;
    return value.scalar_type() == at::kFloat && UsesItsBits(value);
  };
  for (const Leaf& leaf : leaves) {
    if (!leaf.scalar && !plain(leaf.tensor)) return false;
  }
  for (const auto& [name, parameter] : problem.reference->Parameters()) {
    if (!plain(parameter)) return false;
  }
  return true;
}

Lowering FindLowering(const LoadedProblem& problem, const std::vector<Leaf>& leaves, const Expected& expected,
                      const std::vector<at::Tensor>& got) {
  const auto part = [](const at::Tensor& of) { return Some(of).to(at::kDouble); };
  struct Output {
    std::size_t index;
    at::Tensor high, errors, own;
    Plane plane;
  };
  std::vector<Output> outputs;
  std::set<std::size_t> factors;
  for (std::size_t i = 0; i < got.size() && i < expected.high.size() && i < problem.float_factors.size(); ++i) {
    const at::Tensor& high = expected.high[i];
    if (problem.float_factors[i].empty() || expected.LeftOut(i) || got[i].scalar_type() != at::kFloat ||
        high.scalar_type() != at::kDouble || got[i].numel() < kFewest || high.sizes() != got[i].sizes() ||
        !at::isfinite(high).all().item<bool>() || !at::isfinite(got[i]).all().item<bool>()) {
      continue;
    }
    const at::Tensor right = part(high);
    const Plane plane(right);
    outputs.push_back(
        {i, right, plane.Without(part(got[i]) - right), plane.Without(part(expected.plain[i]) - right), plane});
    factors.insert(problem.float_factors[i].begin(), problem.float_factors[i].end());
  }
  if (outputs.empty()) return {};
  // Each by itself: the errors of one are alike along a row, and those of the other along a column.
  for (const Format& format : kFormats) {
    for (std::size_t factor : factors) {
      const auto call = problem.reference->Prepare(Rounded(leaves, factor, format), Mode::kDouble);
      call->Run();
      const std::vector<at::Tensor> rounded = call->Outputs();
      for (const Output& output : outputs) {
        if (output.index >= rounded.size() || rounded[output.index].sizes() != got[output.index].sizes()) continue;
        const at::Tensor marks = output.plane.Without(part(rounded[output.index]) - output.high);
        const double all = Sum(marks.square()), both = Sum(marks * output.errors), own = Sum(output.errors.square());
        if (!(all > 0) || !(own > 0)) continue;  // (NaN, too)
        const double share = both / all, correlation = both / std::sqrt(all * own);
        const double least = std::max(kCorrelation, kSigmas / std::sqrt(static_cast<double>(marks.numel())));
        if (share >= kShare && share <= kLargestShare && correlation >= least &&
            LeastShareOfParts(output.errors, marks) >= kShareOfPart &&
            Sum(marks * output.own) / all <= kOwnShare * share) {
          return {format.how, output.index, share, correlation};
        }
      }
    }
  }
  return {};
}

}  // namespace grove::judge
