#include "worker/judge/marks.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace grove::judge {
namespace {

constexpr std::int64_t kParts = 4;
constexpr double kShare = 0.5, kLargestShare = 2, kShareOfPart = 0.2;
constexpr double kCorrelation = 0.15, kSigmas = 7;  // honest errors have 1 / sqrt(elements), of either sign
// Of the result's rms. What is left of columns that are alike is float64's rounding of them (2^-53), or of the sums
// that they are (2^-42 at 2^24 terms). Factors rounded to 10 bits leave 2^-12.3 / sqrt(terms), and a 32nd of it where
// they vary by no more than that: 2^-29 there.
constexpr double kOwnRounding = 0x1p-36;

double Sum(const at::Tensor& values) { return values.sum().item<double>(); }
double Rms(const at::Tensor& values) { return values.numel() > 0 ? values.square().mean().sqrt().item<double>() : 0; }

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

at::Tensor LookedAt(const at::Tensor& all) {
  const at::Tensor flat = all.reshape({-1});
  return flat.narrow(0, 0, std::min(flat.numel(), kMostLookedAt));
}

Plane::Plane(const at::Tensor& result)
    : columns_(result.dim() > 1 && result.numel() <= kMostLookedAt ? result.size(-1) : 1),
      least_(kOwnRounding * Rms(LookedAt(result))),
      direction_(Centred(result)) {
  direction_ = Rms(direction_) > least_ ? direction_ / direction_.square().sum().sqrt() : at::zeros_like(direction_);
}

at::Tensor Plane::Without(const at::Tensor& errors) const {
  const at::Tensor centred = Centred(errors);
  const at::Tensor left = centred - direction_ * (centred * direction_).sum();
  return Rms(left) > least_ ? left : at::zeros_like(left);
}

at::Tensor Plane::Centred(const at::Tensor& all) const {
  at::Tensor flat = LookedAt(all).to(at::kDouble);
  flat = flat - flat.mean();
  if (columns_ < 2 || flat.numel() == columns_) return flat;
  const at::Tensor rows = flat.view({-1, columns_});
  return (rows - rows.mean(1, /*keepdim=*/true) - rows.mean(0, /*keepdim=*/true)).reshape({-1});
}

Likeness Alike(const at::Tensor& errors, const at::Tensor& marks) {
  const double all = Sum(marks.square()), both = Sum(marks * errors), own = Sum(errors.square());
  if (!(all > 0) || !(own > 0) || !std::isfinite(both)) return {};
  return {both / all, both / std::sqrt(all * own)};
}

bool BearMarks(const Likeness& alike, const at::Tensor& errors, const at::Tensor& marks) {
  const double least = std::max(kCorrelation, kSigmas / std::sqrt(static_cast<double>(marks.numel())));
  return alike.share >= kShare && alike.share <= kLargestShare && alike.correlation >= least &&
         LeastShareOfParts(errors, marks) >= kShareOfPart;
}

}  // namespace grove::judge
