#include "worker/judge/rare_values.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "worker/judge/tensor_type.h"

namespace grove::judge {
namespace {

constexpr double kShareBeyond = 1.0 / 16, kShareNot = 1.0 / 64;
constexpr double kLeastFactor = 0.5, kMostFactor = 4;  // powers of two
// Squares, cubes and fourth powers of what is no larger are numbers of float32, as are the integers nearest to it.
constexpr double kLargest = 1e9;
constexpr double kAway = 1.0 / 64;  // of the largest: who is never smaller, and of one sign, may be divided by

// Some elements, and at least two of several.
at::Tensor Some(const at::Tensor& like, double share, const at::Generator& generator) {
  at::Tensor some = Uniform(like, generator).lt(share);
  const at::Tensor flat = some.view({-1});
  flat[flat.numel() / 3].fill_(true);
  flat[2 * flat.numel() / 3].fill_(true);
  return some;
}

// Nothing where no row of it is known to be allowed to be zero.
std::optional<at::Tensor> ZeroRows(const at::Tensor& value, Random* random) {
  if (value.dim() < 2) return std::nullopt;
  const bool exact = !Fractions(value);
  const at::Tensor sizes = exact ? value : value.abs();
  const bool away = !exact && sizes.min().item<double>() > kAway * sizes.max().item<double>();
  if (away && (value.is_complex() || True(value.gt(0).all()) || True(value.lt(0).all()))) return std::nullopt;
  at::Tensor made = value.contiguous().clone();
  for (std::int64_t dim = 0; dim < value.dim(); ++dim) {
    if (value.size(dim) < 2) continue;
    made.select(dim, static_cast<std::int64_t>(random->Below(static_cast<std::uint64_t>(value.size(dim))))).zero_();
  }
  return made;
}

// Nothing where it is no mask, or one that has to be symmetric.
std::optional<at::Tensor> EmptyRows(const at::Tensor& value, Random* random) {
  if (value.dim() == 0 || value.numel() < 2 || value.is_complex()) return std::nullopt;
  const at::Tensor zeros = value.eq(0);
  if (!True(zeros.logical_or(value.eq(1)).all()) || True(zeros.all()) || !True(zeros.any())) return std::nullopt;
  if (value.dim() == 1) return at::zeros_like(value);
  if (SymmetryOf(value.to(at::kFloat)) != Symmetry::kNone) return std::nullopt;
  return ZeroRows(value, random);
}

// Nothing where the values cross all bounds already, or where one of another sign would mean something else.
std::optional<at::Tensor> BeyondBounds(const at::Tensor& value, const std::vector<double>& bounds, Random* random) {
  if (value.is_complex()) return std::nullopt;
  const double least = value.min().item<double>(), most = value.max().item<double>();
  struct Beyond {
    double bound, sign;  // of the power of two
    double reach;        // of the power
  };
  std::vector<Beyond> beyond;
  for (double bound : bounds) {
    if ((least >= 0 && bound < 0) || (most <= 0 && bound > 0)) continue;
    const bool above = bound > most, below = bound < least;
    if (!above && !below) continue;
    const double sign = above == (bound > 0) ? 1 : -1;
    const double reach = sign < 0 ? kMostFactor : std::min(kMostFactor, std::log2(kLargest / std::fabs(bound)));
    if (reach > kLeastFactor) beyond.push_back({bound, sign, reach});
  }
  if (beyond.empty()) return std::nullopt;
  const at::Generator generator = MakeGenerator(value.device(), random->Next() >> 1);
  const at::Tensor some = Some(value, kShareBeyond, generator);
  const at::Tensor power = Uniform(value, generator), which = Uniform(value, generator);
  at::Tensor made = value;
  for (std::size_t i = 0; i < beyond.size(); ++i) {
    const auto& [bound, sign, reach] = beyond[i];
    const at::Tensor there = which.ge(static_cast<double>(i) / static_cast<double>(beyond.size()));
    const at::Tensor far = at::exp2((power * (reach - kLeastFactor) + kLeastFactor) * sign) * bound;
    made = at::where(some.logical_and(there), far.to(value.scalar_type()), made);
  }
  return made;
}

std::optional<at::Tensor> NotNumbers(const at::Tensor& value, const RareValues::OfInput& rare, Random* random) {
  if (!rare.nan && !rare.infinity) return std::nullopt;
  const at::Generator generator = MakeGenerator(value.device(), random->Next() >> 1);
  at::Tensor made = value;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto put = [&](double number) { made = made.masked_fill(Some(value, kShareNot, generator), number); };
  if (rare.infinity) put(kInfinity);
  if (rare.infinity) put(-kInfinity);
  if (rare.nan) put(std::nan(""));
  return made;
}

// All on one side, unlike others as before: differences are as large as the values, and nothing cancels. Nothing of one
// sign: the other would mean something else.
std::optional<at::Tensor> Far(double side, const at::Tensor& value) {
  if (value.is_complex() || !True(value.gt(0).any()) || !True(value.lt(0).any())) return std::nullopt;
  if (HasManyZeros(value)) return std::nullopt;
  const at::Tensor sizes = value.abs();
  return (sizes / sizes.mean() + 1) * (side * kFar);
}

}  // namespace

bool Says(const RareValues& rare, int form) {
  return form == kZeroRows       ? rare.read && !rare.no_zero_rows
         : form == kBeyondBounds ? rare.Bounded()
         : form == kEmptyMasks   ? rare.read && (rare.Emptied() || !rare.fills)
         : form == kFarBelow     ? rare.Largest()
         : form == kFarAbove     ? rare.Least()
         : form == kMeeting      ? !rare.compared.empty()
                                 : rare.TreatsNan();
}

Transformed MakeRare(int form, const RareValues& rare, Random* random, std::vector<Leaf>* leaves) {
  Transformed result;
  const std::vector<Leaf> given = *leaves;
  bool infinite = false, changed = false;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const at::Tensor& value = given[i].tensor;
    if (form == kEmptyMasks) {
      const bool asked = !rare.fills || (i < rare.empties.size() && rare.empties[i]);
      std::optional<at::Tensor> made = asked && !given[i].scalar ? EmptyRows(value, random) : std::nullopt;
      if (!made) continue;
      if (const auto earlier = EarlierEqual(given, i)) made = (*leaves)[*earlier].tensor;
      (*leaves)[i].tensor = WithStrides(*made, value.strides());
      changed = true;
      continue;
    }
    if (given[i].scalar || !Fractions(value) || KeepsMeaning(value) || SymmetryOf(value) != Symmetry::kNone) {
      continue;
    }
    at::Tensor& leaf = (*leaves)[i].tensor;
    if (const auto earlier = EarlierEqual(given, i)) {
      leaf = WithStrides((*leaves)[*earlier].tensor, value.strides());
      continue;
    }
    const at::Tensor wide = IsHalf(value.scalar_type()) ? value.to(at::kFloat) : value;
    std::optional<at::Tensor> made;
    if (form == kZeroRows) {
      made = ZeroRows(wide, random);
    } else if (i < rare.inputs.size() && form == kBeyondBounds) {
      made = BeyondBounds(wide, rare.inputs[i].bounds, random);
    } else if (i < rare.inputs.size() && IsFar(form)) {
      const bool asked = form == kFarBelow ? rare.inputs[i].largest : rare.inputs[i].least;
      if (asked && !IsHalf(value.scalar_type())) made = Far(form == kFarBelow ? -1 : 1, value);
    } else if (i < rare.inputs.size()) {
      made = NotNumbers(wide, rare.inputs[i], random);
      infinite = infinite || (made && rare.inputs[i].infinity);
    }
    if (!made) continue;
    const at::Tensor own = made->to(value.scalar_type());
    if (form == kBeyondBounds && !True(at::isfinite(own).all())) {
      result.skipped = "the inputs' type cannot hold such values";
      return result;
    }
    leaf = WithStrides(own, value.strides());
    changed = true;
  }
  if (!changed) {
    result.skipped = form == kBeyondBounds ? "the inputs' values are on both sides of the bounds already"
                     : form == kEmptyMasks ? "there is no mask among the inputs"
                     : IsFar(form)         ? "no input that a largest or least element is taken of has both signs"
                                           : "the inputs' values mean something that rare ones would not";
    return result;
  }
  result.how = form == kZeroRows       ? "with rows of zeros"
               : form == kEmptyMasks   ? "with masks that let nothing through in some rows"
               : form == kBeyondBounds ? "some elements beyond the bounds that the program names"
               : form == kFarBelow     ? "an input far below zero throughout"
               : form == kFarAbove     ? "an input far above zero throughout"
               : infinite              ? "some elements infinite or NaN"
                                       : "some elements NaN";
  return result;
}

}  // namespace grove::judge
