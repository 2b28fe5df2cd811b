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

bool True(const at::Tensor& condition) { return condition.item<bool>(); }

at::Tensor Uniform(const at::Tensor& like, const at::Generator& generator) {
  return at::rand(like.sizes(), generator, at::TensorOptions().device(like.device()).dtype(at::kFloat));
}

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

at::Tensor FirstOf(at::Tensor value) {
  while (value.dim() > 0) value = value.select(0, 0);
  return value;
}

// Places at the end of rows, of a random number up to a fourth of each, as in a mask of sequences that are padded; some
// in any case. Rows run along the last dimension that has more than one place.
at::Tensor Ends(const at::Tensor& like, const at::Generator& generator) {
  std::int64_t along = like.dim() - 1;
  while (along > 0 && like.size(along) == 1) --along;
  if (like.dim() == 0 || like.size(along) == 1) return at::ones_like(like, like.options().dtype(at::kBool));
  const std::int64_t size = like.size(along), most = std::max<std::int64_t>(size / 4, 1);
  std::vector<std::int64_t> rows = like.sizes().vec(), place(rows.size(), 1);
  rows[along] = 1;
  place[along] = size;
  const auto options = at::TensorOptions().device(like.device()).dtype(at::kFloat);
  const at::Tensor lengths = at::rand(rows, generator, options).mul_(static_cast<double>(most + 1)).floor_();
  lengths.view({-1})[lengths.numel() - 1].fill_(static_cast<double>(most));
  return at::arange(size - 1, -1, -1, options).view(place).lt(lengths).contiguous();
}

// Nothing where others in their place would be no such thing: an index that is none, a part of one.
std::optional<at::Tensor> NotAlike(int form, const at::Tensor& value, Random* random) {
  const at::Tensor first = FirstOf(value);
  const bool zero = True(first.eq(0)), one = True(first.eq(1)), exact = !Fractions(value);
  if (exact && value.scalar_type() != at::kBool && !one) return std::nullopt;
  if (form == kLessAlike && (exact || zero)) return std::nullopt;
  const double rest = form == kLessAlike ? 0.75 : 0;
  const at::Tensor ends = Ends(value, MakeGenerator(value.device(), random->Next() >> 1));
  return at::where(ends, zero ? at::ones_like(value) : exact ? at::zeros_like(value) : value * rest, value);
}

// Probabilities of things that are equally likely.
bool AddsUpToOne(const at::Tensor& value) {
  if (!Fractions(value) || value.is_complex()) return false;
  const double first = FirstOf(value).to(at::kDouble).item<double>();
  for (std::int64_t dim = 0; dim < value.dim(); ++dim) {
    const auto size = static_cast<double>(value.size(dim));
    if (size > 1 && std::fabs(first * size - 1) < 1e-2) return true;
  }
  return false;
}

}  // namespace

std::vector<bool> AlikeInputs(const std::vector<Leaf>& one, const std::vector<Leaf>& other) {
  std::vector<bool> alike(one.size(), false);
  for (std::size_t i = 0; i < one.size() && i < other.size(); ++i) {
    const at::Tensor& value = one[i].tensor;
    if (one[i].scalar || value.numel() == 0) continue;
    const at::Tensor first = FirstOf(value);
    if (Fractions(value) && !True(at::isfinite(first))) continue;
    // (Of most inputs the first row says so.)
    const at::Tensor row = value.dim() > 0 ? value.select(0, 0) : value;
    alike[i] =
        True(row.eq(first).all()) && True(value.eq(first).all()) && value.equal(other[i].tensor) && !AddsUpToOne(value);
  }
  return alike;
}

bool Says(const RareValues& rare, int form) {
  return form == kZeroRows                         ? rare.guarded
         : form == kBeyondBounds                   ? rare.Bounded()
         : form == kEmptyMasks                     ? rare.Emptied()
         : form == kNotAlike || form == kLessAlike ? rare.Alike()
                                                   : rare.TreatsNan();
}

Transformed MakeRare(int form, const RareValues& rare, Random* random, std::vector<Leaf>* leaves) {
  Transformed result;
  const std::vector<Leaf> given = *leaves;
  bool infinite = false, changed = false;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const at::Tensor& value = given[i].tensor;
    if (form == kEmptyMasks || form == kNotAlike || form == kLessAlike) {
      const std::vector<bool>& which = form == kEmptyMasks ? rare.empties : rare.alike;
      if (i >= which.size() || !which[i] || given[i].scalar) continue;
      std::optional<at::Tensor> made = form == kEmptyMasks ? EmptyRows(value, random) : NotAlike(form, value, random);
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
                     : form == kNotAlike || form == kLessAlike
                         ? "of inputs that are alike in all elements nothing else can be made"
                         : "the inputs' values mean something that rare ones would not";
    return result;
  }
  result.how = form == kZeroRows       ? "with rows of zeros"
               : form == kEmptyMasks   ? "with masks that let nothing through in some rows"
               : form == kBeyondBounds ? "some elements beyond the bounds that the program names"
               : form == kNotAlike || form == kLessAlike
                   ? "inputs that are alike in all elements with others at the end of their rows"
               : infinite ? "some elements infinite or NaN"
                          : "some elements NaN";
  return result;
}

}  // namespace grove::judge
