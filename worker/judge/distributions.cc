#include "worker/judge/distributions.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "worker/judge/few_integers.h"
#include "worker/judge/fixed_inputs.h"
#include "worker/judge/tensor_type.h"

namespace grove::judge {
namespace {

constexpr double kScale = 128;           // softmax and its like overflow without their maximum taken off
constexpr double kLessScale = 16;        // exponentials bear that of uniform and normal values
constexpr double kShift = 1000;          // as the CRFM authors' second LayerNorm: x * 0.1 + 1000
constexpr double kShrink = 0.1;          // of the same
constexpr double kNearOne = 0.01;        // of values whose product stays finite: x * 0.01 + 1
constexpr double kOutlier = 1000;        // times an element
constexpr double kMostOutlier = 0x1p17;  // in long sums
constexpr double kOutlierShare = 1e-3;   // of the elements
constexpr int kFew = 1, kFewLess = 2;    // forms of OUTLIERS
constexpr std::int64_t kLarge = 1 << 14;
constexpr double kDense = 1.0 / 8;     // of a sparse input that is not zero, at most
constexpr double kPerReduction = 128;  // elements that are not zero in one reduction, about
// Forms of SCALED.
constexpr int kSigns = 0, kAsTheyAre = 1, kLess = 2, kSignsAlone = 3, kAlone = 4, kMostAlone = 4,
              kSmall = kAlone + kMostAlone, kSorted = kSmall + 1, kMostSorted = 2;
constexpr double kSortedScale = 4;  // of one sorted input alone
constexpr int kShiftedAlone = 2;    // the first of the forms of SHIFTED in which one input alone is moved
constexpr int kDown = kShiftedAlone + kMostAlone, kNegative = kDown + 1, kLow = kNegative + 1,
              kLowLess = kLow + 1;           // of SHIFTED
constexpr double kLowShift = 3;              // rms: gates are open a little, memories long
constexpr double kTurn = 6.283185307179586;  // radians
constexpr int kMostFactors = 2;              // forms of SPARSE, for the inputs that are a factor
constexpr double kHeld = 16;                 // spacings of the type that must fit into the spread of shifted values
constexpr std::int64_t kBlock = std::int64_t{1} << 22;  // elements that are nudged at a time

bool RandomSigns(int form) { return form == kSigns || form == kLess || form == kSignsAlone; }
double ScaleOf(int form) {
  return form == kSmall ? 1 / kScale : form == kLess ? kLessScale : form == kSignsAlone ? 1 : kScale;
}

// What loops leave out first: of each dimension an element at its end, and the last of all. Upwards where both signs
// occur: in sums of exponentials the others say nothing. There a small one would not show, nor the last of all beside a
// larger one in its row: none is less than usual, and that one the largest. Zeros stay.
void AtTheEnds(const at::Tensor& value, double size, Random* random, at::Tensor* made) {
  constexpr double kBeside = 2;
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random->Below(static_cast<std::uint64_t>(n)));
  };
  const bool upwards = !value.is_complex() && True(value.gt(0).any());
  const double usual = upwards ? value.abs().mean().item<double>() : 0;
  double largest = 0;
  for (std::int64_t dim = 0; dim <= value.dim(); ++dim) {  // that one: at the ends of all
    at::Tensor from = value, to = *made;
    for (std::int64_t d = 0; d < value.dim(); ++d) {
      const std::int64_t last = from.size(0) - 1, at = d == dim || dim == value.dim() ? last : below(last + 1);
      from = from.select(0, at);
      to = to.select(0, at);
    }
    if (!upwards) {
      to.copy_(from * size);
      continue;
    }
    const double own = std::fabs(from.item<double>());
    const double end = own > 0 ? std::max({own, usual, dim == value.dim() ? kBeside * largest : 0}) : 0;
    largest = std::max(largest, end);
    to.fill_(end * size);
  }
}

double TinyNormal(at::ScalarType type) { return type == at::kDouble ? 0x1p-1022 : 0x1p-126; }

// Not every operation knows half precision on a CPU.
at::ScalarType Wider(at::ScalarType type) { return IsHalf(type) ? at::kFloat : type; }

double Spacing(at::ScalarType type) {  // of numbers at 1
  switch (type) {
    case at::kHalf:
      return 0x1p-10;
    case at::kBFloat16:
      return 0x1p-7;
    case at::kDouble:
    case at::kComplexDouble:
      return 0x1p-52;
    default:
      return 0x1p-23;
  }
}

// Sets the three bits behind the ten of a fraction that half precision and TF32 keep (of float64: behind the 23 that
// float32 keeps) to 011: what they round off is then 0.38 to 0.5 of their spacing. The bits behind stay as they are,
// and so do values that have none of them: a program may know that shorter types hold them.
at::Tensor Lean(const at::Tensor& value) {
  if (value.is_complex()) return at::view_as_complex(Lean(at::view_as_real(value)).contiguous());
  const bool wide = value.scalar_type() == at::kDouble;
  const int beyond = wide ? 52 - 23 : 23 - 10;
  const std::int64_t mask = std::int64_t{7} << (beyond - 3), bits = std::int64_t{3} << (beyond - 3);
  const at::Tensor words = value.contiguous().view(wide ? at::kLong : at::kInt);
  if (True(words.bitwise_and((std::int64_t{1} << beyond) - 1).eq(0).all())) return value;
  const at::Tensor moved = words.bitwise_and(~mask).bitwise_or(bits).view(value.scalar_type());
  // Zeros, and what would go beyond the others: values may end where something does (probabilities at 1).
  const at::Tensor kept = value.abs()
                              .lt(TinyNormal(value.scalar_type()))
                              .logical_or(moved.gt(value.max()))
                              .logical_or(moved.lt(value.min()));
  return at::where(kept, value, moved);
}

// A few elements of each dimension, from the first on, but for `whole`: what holds for all holds for these.
at::Tensor FewOf(at::Tensor value, std::int64_t whole) {
  constexpr std::int64_t kFew = 8;
  for (std::int64_t dim = 0; dim < value.dim(); ++dim) {
    if (dim != whole) value = value.narrow(dim, 0, std::min(value.size(dim), kFew));
  }
  return value;
}

// Along any dimension, upwards or downwards, where chance hardly makes so many values so.
bool IsOrdered(const at::Tensor& value) {
  constexpr double kBits = 12;  // one draw in 4,096
  for (std::int64_t dim = 0; dim < value.dim(); ++dim) {
    const auto size = static_cast<double>(value.size(dim));
    const double rows = static_cast<double>(value.numel()) / size;
    if (size < 2 || rows * std::lgamma(size + 1) / std::log(2.0) < kBits) continue;
    const at::Tensor few = FewOf(value, dim);
    const auto never_falls = [dim](const at::Tensor& of) {
      const std::int64_t rest = of.size(dim) - 1;
      return True(of.narrow(dim, 1, rest).ge(of.narrow(dim, 0, rest)).all());
    };
    if (never_falls(few) && IsSorted(value, dim)) return true;
    if (never_falls(few.flip(dim)) && IsSorted(value.flip(dim), dim)) return true;
  }
  return false;
}

// By so much the sum of probabilities may be off: some are made in a half type, and one row may sum to 1.00 by chance.
double OffOne(const at::Tensor& value, const at::Tensor& sums) {
  constexpr std::int64_t kFewRows = 4;
  return IsHalf(value.scalar_type()) || sums.numel() >= kFewRows ? 1e-2 : 1e-5;
}

// Of probabilities, over the last dimension or the second: minus infinity is that of one that is zero.
bool AreLogarithms(const at::Tensor& value) {
  if (value.dim() == 0 || value.size(-1) < 2 || !True(value.le(0).all())) return false;
  const at::Tensor wide = value.to(at::kFloat);
  for (std::int64_t dim : {std::int64_t{-1}, value.dim() > 1 ? std::int64_t{1} : std::int64_t{-1}}) {
    const at::Tensor sums = wide.logsumexp(dim);
    if (True(sums.abs().le(OffOne(value, sums)).all())) return true;
  }
  return false;
}

// Of values that are finite; what holds for all rows holds for some of them.
bool MeansMore(const at::Tensor& value, bool by_order = true) {
  const at::Tensor real = value.is_complex() ? at::view_as_real(value) : value.to(Wider(value.scalar_type()));
  if (True(real.eq(real.reshape({-1})[0]).all())) return true;
  if (True(real.eq(real.round()).all())) return true;
  if (value.is_complex()) {
    constexpr double kRoundings = 8;
    const double off = kRoundings * Spacing(value.scalar_type());
    const at::Tensor sizes = value.abs();
    if (True((sizes - 1).abs().le(off).all())) return true;  // turns
    for (std::int64_t dim = 0; dim < value.dim(); ++dim) {   // directions, unitary matrices
      if (True((sizes.square().sum(dim) - 1).abs().le(std::max(off, 1e-5)).all())) return true;
    }
    return false;
  }
  if (value.dim() == 0) return false;
  if (by_order && IsOrdered(value)) return true;
  if (value.size(-1) < 2) return false;
  const at::Tensor wide = value.to(at::kFloat);
  if (AreLogarithms(value)) return true;
  const bool positive = True(value.ge(0).all());
  // Elements are rounded each by itself, so that what is left of a sum grows as its root does.
  const double spacing = Spacing(value.scalar_type());
  for (std::int64_t dim : {std::int64_t{-1}, value.dim() > 1 ? std::int64_t{1} : std::int64_t{-1}}) {
    const at::Tensor sum = wide.sum(dim), squares = wide.square().sum(dim);
    if (positive && True((sum - 1).abs().le(OffOne(value, sum)).all())) return true;  // probabilities
    const double off = std::max(8 * spacing / std::sqrt(static_cast<double>(wide.size(dim))), 1e-5);
    if (True((squares - 1).abs().le(off).all())) return true;                                // directions
    if (!positive && True(sum.abs().le(squares.sqrt() * (4 * spacing)).all())) return true;  // mean taken off
  }
  return false;
}

// Also of a complex type.
bool IsReal(const at::Tensor& value) { return !value.is_complex() || True(at::imag(value).eq(0).all()); }

// Whether all matrices are positive definite: what makes them others one by one makes them indefinite.
bool IsDefinite(const at::Tensor& value) {
  constexpr std::int64_t kMost = std::int64_t{1} << 20;  // elements
  const Symmetry symmetry = SymmetryOf(value);
  const bool hermitian = symmetry == Symmetry::kHermitian || (symmetry == Symmetry::kSymmetric && IsReal(value));
  if (!hermitian || value.numel() > kMost) return false;
  try {
    const at::Tensor wide = value.to(value.is_complex() ? at::kComplexDouble : at::kDouble);
    return True(std::get<1>(at::linalg_cholesky_ex(wide)).eq(0).all());
  } catch (const std::exception&) {  // no memory, or no such function here
    return false;
  }
}

// A D A D of it, by factors of rows.
at::Tensor Framed(const at::Tensor& value, const at::Tensor& factors) {
  return value * factors.unsqueeze(-1) * factors.unsqueeze(-2);
}

// What stands twice in each row of `like`, as halves or as neighbours, does so in what is made of it: tables of a
// rotation, of which programs read the one or the other.
at::Tensor Repeated(const at::Tensor& like, const at::Tensor& made) {
  if (like.dim() == 0 || like.size(-1) < 4 || like.size(-1) % 2 != 0) return made;
  const std::int64_t half = like.size(-1) / 2;
  std::vector<std::int64_t> halves = like.sizes().vec(), pairs = halves;
  halves.back() = pairs.back() = 2;
  halves.push_back(half);
  pairs.insert(pairs.end() - 1, half);
  const auto twice = [](const at::Tensor& of, const std::vector<std::int64_t>& sizes, std::int64_t dim) {
    const at::Tensor parted = of.reshape(sizes);
    return True(parted.select(dim, 0).eq(parted.select(dim, 1)).all());
  };
  const at::Tensor few = FewOf(like, like.dim() - 1);
  const auto of_few = [&few](std::vector<std::int64_t> sizes) {
    std::copy(few.sizes().begin(), few.sizes().end() - 1, sizes.begin());
    return sizes;
  };
  for (const auto& [sizes, dim] : {std::pair(halves, std::int64_t{-2}), std::pair(pairs, std::int64_t{-1})}) {
    if (!twice(few, of_few(sizes), dim) || !twice(like, sizes, dim)) continue;
    return made.reshape(sizes).narrow(dim, 1, 1).expand(sizes).reshape(like.sizes());
  }
  return made;
}

// Elements that stay in a sparse input: a few everywhere, more at the end of the rows, and the last of all, for what is
// left out is most often at the end.
at::Tensor Kept(const at::Tensor& value, double reduction, const at::Generator& generator) {
  const double density = std::clamp(kPerReduction / std::max(reduction, 1.0), 1e-9, kDense);
  const at::Tensor chance = Uniform(value, generator);
  at::Tensor kept = chance.lt(density);
  if (value.dim() > 0 && value.size(-1) > 16) {
    const std::int64_t last = value.size(-1) - 1;
    kept.select(-1, last).logical_or_(chance.select(-1, last).lt(std::min(8 * density, 1.0)));
  }
  const at::Tensor flat = kept.view({-1});
  flat[0].fill_(true);
  flat[flat.numel() - 1].fill_(true);
  return kept;
}

}  // namespace

at::Tensor Uniform(const at::Tensor& like, const at::Generator& generator) {
  return at::rand(like.sizes(), generator, at::TensorOptions().device(like.device()).dtype(at::kFloat));
}

at::Generator MakeGenerator(const at::Device& device, std::uint64_t seed) {
  if (!device.is_cuda()) return at::detail::createCPUGenerator(seed);
  at::Generator generator = at::globalContext().defaultGenerator(device).clone();
  generator.set_current_seed(seed);
  return generator;
}

bool KeepsMeaningWhereFinite(const at::Tensor& value) {
  if (value.numel() == 0) return true;
  const at::Tensor finite = at::isfinite(value);
  if (True(finite.all())) return KeepsMeaning(value);
  return (!value.is_complex() && AreLogarithms(value)) || KeepsMeaning(at::where(finite, value, at::zeros_like(value)));
}

bool KeepsMeaning(const at::Tensor& value) {
  if (value.numel() == 0) return true;
  const at::Tensor real = value.is_complex() ? at::view_as_real(value) : value;
  if (real.is_floating_point() && !True(at::isfinite(real).all())) return true;
  constexpr std::int64_t kRows = 64;
  if (value.dim() < 2 || value.size(0) <= kRows) return MeansMore(value);
  return MeansMore(value.narrow(0, 0, kRows)) && MeansMore(value);
}

bool SquareEnds(const at::Tensor& value) {
  return value.dim() >= 2 && value.size(-1) >= 2 && value.size(-1) == value.size(-2);
}

Symmetry SymmetryOf(const at::Tensor& value) {
  if (!SquareEnds(value)) return Symmetry::kNone;
  const auto is = [](Symmetry kind, const at::Tensor& of) {
    const at::Tensor turned = of.transpose(-1, -2);
    return True(of.eq(kind == Symmetry::kSkew        ? turned.neg()
                      : kind == Symmetry::kHermitian ? turned.conj()
                                                     : turned)
                    .all());
  };
  const at::Tensor few = FewOf(value, /*whole=*/-1);
  for (const Symmetry kind : {Symmetry::kSymmetric, Symmetry::kHermitian, Symmetry::kSkew}) {
    if (kind == Symmetry::kHermitian && !value.is_complex()) continue;
    if (is(kind, few) && is(kind, value)) return kind;
  }
  return Symmetry::kNone;
}

bool IsSymmetric(const at::Tensor& value) { return SymmetryOf(value) == Symmetry::kSymmetric; }

at::Tensor Mirrored(const at::Tensor& like, const at::Tensor& made) {
  const Symmetry symmetry = SymmetryOf(like);
  if (symmetry == Symmetry::kNone) return made;
  const at::Tensor above = made.triu(1), below = above.transpose(-1, -2);
  if (symmetry == Symmetry::kSkew) return above - below;
  if (symmetry == Symmetry::kSymmetric) return made.triu() + below;
  return above + below.conj() + at::real(made).to(made.scalar_type()).triu().tril();
}

// (A row of one value each is no order, but a value that comes again.)
bool IsSorted(const at::Tensor& value, std::int64_t dim) {
  const std::int64_t rest = value.size(dim) - 1;
  const at::Tensor next = value.narrow(dim, 1, rest), former = value.narrow(dim, 0, rest);
  if (!True(next.ge(former).all())) return false;
  return 2 * next.gt(former).any(dim).sum().item<std::int64_t>() >= value.numel() / value.size(dim);
}

bool HasManyZeros(const at::Tensor& value) {
  constexpr double kMany = 1.0 / 64;
  return value.eq(0).sum().item<double>() > kMany * static_cast<double>(value.numel());
}

std::optional<std::size_t> EarlierEqual(const std::vector<Leaf>& leaves, std::size_t i) {
  const at::Tensor& value = leaves[i].tensor;
  for (std::size_t j = 0; j < i; ++j) {
    const at::Tensor& earlier = leaves[j].tensor;
    if (leaves[j].scalar || earlier.scalar_type() != value.scalar_type() || earlier.sizes() != value.sizes()) continue;
    if (earlier.equal(value)) return j;
  }
  return std::nullopt;
}

const char* EnumName(Distribution distribution) {
  switch (distribution) {
    case Distribution::kGiven:
      return "INPUT_DISTRIBUTION_GIVEN";
    case Distribution::kScaled:
      return "INPUT_DISTRIBUTION_SCALED";
    case Distribution::kShifted:
      return "INPUT_DISTRIBUTION_SHIFTED";
    case Distribution::kSparse:
      return "INPUT_DISTRIBUTION_SPARSE";
    case Distribution::kOutliers:
      return "INPUT_DISTRIBUTION_OUTLIERS";
    case Distribution::kRare:
      return "INPUT_DISTRIBUTION_RARE";
    case Distribution::kIntegers:
      return "INPUT_DISTRIBUTION_INTEGERS";
  }
  return "";
}

Distribution ParseDistribution(const std::string& name) {
  for (Distribution one : {Distribution::kGiven, Distribution::kScaled, Distribution::kShifted, Distribution::kSparse,
                           Distribution::kOutliers, Distribution::kRare, Distribution::kIntegers}) {
    if (name == EnumName(one) || name == std::to_string(1 + static_cast<int>(one))) return one;
  }
  throw std::runtime_error("option distributions has an unknown entry \"" + name + "\"");
}

int Forms(Distribution distribution) {
  switch (distribution) {
    case Distribution::kScaled:
      return kSorted + kMostSorted;
    case Distribution::kShifted:
      return kLowLess + 1;
    case Distribution::kIntegers:
      return kIntegerForms;
    case Distribution::kOutliers:
      return kFewLess + 1;
    case Distribution::kSparse:
      return kOneTerm + kMostFactors;
    case Distribution::kRare:
      return kRareForms + kFixedForms;
    default:
      return 1;
  }
}

bool Downwards(Distribution distribution, int form) { return distribution == Distribution::kShifted && form >= kDown; }

bool OneTerm(Distribution distribution, int form) { return distribution == Distribution::kSparse && form >= kOneTerm; }

bool Needless(Distribution distribution, int form, const std::set<int>& borne) {
  if (distribution == Distribution::kShifted) {
    // (Each that is moved alone says something of itself.)
    if (form >= kDown) return (form == kNegative || form == kLowLess) && borne.count(form - 1) != 0;
    return form < kShiftedAlone ? form > 0 && borne.count(0) != 0 : !borne.empty() && *borne.begin() < kShiftedAlone;
  }
  if (distribution == Distribution::kOutliers) return form == kFewLess && borne.count(kFew) != 0;
  if (distribution == Distribution::kRare) return LessFixed(form) && borne.count(form - 1) != 0;
  if (distribution == Distribution::kIntegers) return form == kOfFewAgain && borne.count(kOfFew) == 0;
  // (Small values find what large ones hide: a constant that is added; a sorted input alone, what lies beyond another.)
  if (distribution != Distribution::kScaled || form >= kSmall) return false;
  return !borne.empty() && (*borne.begin() < kLess || form == kSignsAlone);
}

namespace {

// One of the inputs that are sorted, all others as they are: what is searched for leaves the range of what it is
// searched in, and distances between neighbours grow.
Transformed ScaleSorted(int which, std::vector<Leaf>* leaves) {
  for (std::size_t i = 0; i < leaves->size(); ++i) {
    Leaf& leaf = (*leaves)[i];
    if (leaf.scalar || !Fractions(leaf.tensor) || leaf.tensor.is_complex() || leaf.tensor.numel() == 0) continue;
    const at::Tensor value = leaf.tensor.to(Wider(leaf.tensor.scalar_type()));
    if (value.dim() == 0 || !IsOrdered(value) || !True(at::isfinite(value).all()) || MeansMore(value, false)) continue;
    if (EarlierEqual(*leaves, i) || which-- > 0) continue;
    leaf.tensor = WithStrides((value * kSortedScale).to(leaf.tensor.scalar_type()), leaf.tensor.strides());
    return {.how = "one sorted input alone times 4", .skipped = ""};
  }
  return {.how = "", .skipped = kTried};
}

}  // namespace

Transformed Transform(Distribution distribution, int form, double reduction, Random* random,
                      std::vector<Leaf>* leaves) {
  if (distribution == Distribution::kScaled && form >= kSorted) return ScaleSorted(form - kSorted, leaves);
  Transformed result;
  const bool lean = distribution == Distribution::kGiven;
  if (lean && form != kLeaning) return result;
  const std::vector<Leaf> given = *leaves;
  int changed = 0, floating = 0, changeable = 0;
  bool one_sign = false;
  const bool shifted_alone = distribution == Distribution::kShifted && form >= kShiftedAlone && form < kDown;
  const bool alone = shifted_alone || (distribution == Distribution::kScaled && form >= kAlone && form < kSmall);
  const int lone = form - (shifted_alone ? kShiftedAlone : kAlone);
  std::vector<bool> keeps(given.size());
  std::vector<std::size_t> large;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i].scalar || !Fractions(given[i].tensor)) continue;
    keeps[i] = KeepsMeaningWhereFinite(given[i].tensor);
    if (!keeps[i] && given[i].tensor.numel() >= kLarge) large.push_back(i);
  }
  // One input alone is larger at its ends: those of two factors would meet.
  const std::size_t ended = large.empty() ? given.size() : large[random->Below(large.size())];
  for (std::size_t i = 0; i < leaves->size(); ++i) {
    Leaf& leaf = (*leaves)[i];
    if (leaf.scalar || !Fractions(leaf.tensor)) continue;
    ++floating;
    if (keeps[i]) continue;
    // NaN and infinities stay where they are.
    const at::Tensor finite = at::isfinite(given[i].tensor);
    const bool all_finite = True(finite.all());
    const at::Tensor whole =
        all_finite ? given[i].tensor : at::where(finite, given[i].tensor, at::zeros_like(given[i].tensor));
    const at::ScalarType type = whole.scalar_type();
    if (lean && type != Wider(type)) continue;  // it has no further bits
    const at::Tensor value = whole.to(Wider(type));
    if (const auto earlier = EarlierEqual(given, i)) {
      leaf.tensor = WithStrides((*leaves)[*earlier].tensor, given[i].tensor.strides());
      continue;
    }
    ++changeable;
    if (alone && changeable - 1 != lone) continue;
    const bool definite = IsDefinite(value);
    if (definite && (distribution == Distribution::kShifted || distribution == Distribution::kSparse)) continue;
    at::Generator generator = MakeGenerator(value.device(), random->Next() >> 1);
    at::Tensor made;
    switch (distribution) {
      case Distribution::kScaled: {
        made = value * ScaleOf(form);
        // Complex numbers may be all real, or in one quadrant: they are turned by any angle. (Not a matrix that is both
        // symmetric and Hermitian, which it is no more then.)
        const bool turns = value.is_complex() && !(IsSymmetric(value) && IsReal(value)),
                   positive = value.is_complex() || True(value.ge(0).all()) || True(value.le(0).all());
        one_sign = one_sign || positive;
        if (!RandomSigns(form) || !positive) break;
        const at::Tensor chance = definite ? Uniform(value.select(-1, 0), generator) : Uniform(value, generator);
        const at::Tensor signs = turns ? at::polar(at::ones_like(chance), chance * kTurn).to(value.scalar_type())
                                       : at::where(chance.lt(0.5), at::ones_like(chance), -at::ones_like(chance));
        made = !definite ? made * signs
               : turns   ? made * signs.unsqueeze(-1) * signs.conj().unsqueeze(-2)
                         : Framed(made, signs);
        break;
      }
      case Distribution::kShifted: {
        const at::Tensor wide = value.is_complex() ? value.to(at::kComplexDouble) : value.to(at::kDouble);
        if (form == kNegative) {  // as far from zero as they were
          if (True(value.ge(0).all()) || True(value.le(0).all()) || value.is_complex()) continue;
          made = value.abs().neg();
          break;
        }
        const bool low = form >= kLow;
        if (low && value.is_complex()) continue;
        const bool positive = low && (True(value.ge(0).all()) || True(value.le(0).all()));
        one_sign = one_sign || positive;
        if (positive && form == kLowLess) continue;
        const double rms = low ? wide.square().mean().sqrt().item<double>() : 0;
        const double shrink = low ? 1 : form == 1 ? kNearOne : kShrink;
        const double shift = low ? kLowShift * rms : form == 1 ? 1 : kShift;
        made = (wide * shrink + (Downwards(distribution, form) ? -shift : shift)).to(value.scalar_type());
        const double spread = shrink * wide.std(/*unbiased=*/false).item<double>();
        if (spread < kHeld * shift * Spacing(type)) {
          if (low) continue;
          result.skipped = form == 0 ? "the inputs' type cannot hold their variation beside 1000" : kTried;
          return result;
        }
        break;
      }
      case Distribution::kSparse:
        made = at::where(Kept(value, reduction, generator), value, at::zeros_like(value));
        break;
      case Distribution::kOutliers: {
        // A few in all: who looks at a sample of the values finds them as the problem draws them. In sums they weigh as
        // much as the many.
        const bool few = form != 0;
        if (few && value.numel() < kLarge) continue;
        const at::Tensor places = definite ? value.select(-1, 0) : value;  // its rows, with their columns
        at::Tensor chosen = few ? at::zeros(places.sizes(), value.options().dtype(at::kBool))
                                : Uniform(places, generator).lt(kOutlierShare);
        const at::Tensor flat = chosen.view({-1});
        for (int one = 0; one < (few ? kHiddenElements : 1); ++one) {
          flat[static_cast<std::int64_t>(random->Below(static_cast<std::uint64_t>(flat.numel())))].fill_(true);
        }
        const double most = type == at::kHalf ? kOutlier : kMostOutlier;
        const double size = form == kFewLess ? kLessScale : few ? std::clamp(reduction, kOutlier, most) : kOutlier;
        made = definite ? Framed(value, 1 + chosen.to(at::real(value).scalar_type()) * (std::sqrt(size) - 1))
                        : at::where(chosen, value * size, value);
        if (few && !definite && i == ended) AtTheEnds(value, size, random, &made);
        break;
      }
      case Distribution::kGiven:
        made = Lean(value);
        break;
      case Distribution::kRare:
      case Distribution::kIntegers:
        return result;  // made elsewhere
    }
    if (distribution == Distribution::kShifted && HasManyZeros(value)) made = at::where(value.eq(0), value, made);
    made = Repeated(value, Mirrored(value, made)).to(type);
    if (!True(at::isfinite(made).all())) {
      result.skipped = "the inputs' type cannot hold such values";
      return result;
    }
    if (!all_finite) made = at::where(finite, made, given[i].tensor);
    leaf.tensor = WithStrides(made, given[i].tensor.strides());
    ++changed;
  }
  // (Of one input there is no other that could stay.)
  if ((changed == 0 && distribution == Distribution::kOutliers && form != 0) ||
      (changed == 0 && Downwards(distribution, form)) ||
      (distribution == Distribution::kShifted && form == kLowLess && !one_sign) || (alone && changeable < 2) ||
      (alone && changed == 0 && changeable > 0)) {
    result.skipped = kTried;
    return result;
  }
  if (changed == 0) {
    result.skipped = floating == 0 ? "no input is of a floating-point type"
                                   : "the inputs' values are whole numbers, probabilities, sorted or all alike, and "
                                     "others would mean something else";
    return result;
  }
  switch (distribution) {
    case Distribution::kScaled:
      if ((form == kAsTheyAre || form == kSignsAlone) && !one_sign) {
        result.skipped = kTried;  // the same as with signs at random
      } else if (form == kSmall) {
        result.how = "divided by 128";
      } else {
        result.how = alone ? "one input alone times 128" : form == kLess ? "times 16" : "times 128";
        if (form == kSignsAlone) {
          result.how = "signs at random";
        } else if (one_sign && RandomSigns(form)) {
          result.how += ", signs at random";
        }
      }
      break;
    case Distribution::kShifted:
      result.how = form == 1           ? "x * 0.01 + 1"
                   : form == kDown     ? "x * 0.1 - 1000"
                   : form == kNegative ? "-|x|"
                   : form == kLow      ? "x less three times its rms"
                   : form == kLowLess  ? "x less three times its rms, but of inputs of one sign"
                   : alone             ? "one input alone x * 0.1 + 1000"
                                       : "x * 0.1 + 1000";
      break;
    case Distribution::kSparse:
      result.how = "most elements zero";
      break;
    case Distribution::kOutliers:
      result.how = form == 0          ? "one element in a thousand times 1000"
                   : form == kFewLess ? "a few elements of all 16 times as large"
                                      : "a few elements of all a thousand times as large and more";
      break;
    case Distribution::kGiven:
      result.how = "the problem's own, moved to where rounding them to fewer bits errs one way";
      break;
    case Distribution::kRare:
    case Distribution::kIntegers:
      break;
  }
  return result;
}

std::vector<Leaf> Nudge(const std::vector<Leaf>& leaves, double size, Random* random, const std::vector<bool>& still) {
  std::vector<Leaf> nudged = leaves;
  for (std::size_t i = 0; i < nudged.size(); ++i) {
    Leaf& leaf = nudged[i];
    if (leaf.scalar || !Fractions(leaf.tensor) || (i < still.size() && still[i])) continue;
    const at::Generator generator = MakeGenerator(leaf.tensor.device(), random->Next() >> 1);
    const at::ScalarType wide = leaf.tensor.is_complex() ? at::kComplexDouble : at::kDouble;
    const at::Tensor moved = leaf.tensor.to(wide, /*non_blocking=*/false, /*copy=*/true);
    // In blocks: large inputs leave no room for as much again.
    const at::Tensor flat = InMemoryOrder(moved);
    for (std::int64_t begin = 0; begin < flat.numel(); begin += kBlock) {
      const at::Tensor block = flat.narrow(0, begin, std::min(kBlock, flat.numel() - begin));
      const at::Tensor up = Uniform(block, generator).lt(0.5);
      block.mul_(up.to(at::kDouble).mul_(2 * size).add_(1 - size));
    }
    // What is symmetric is assumed to be so by honest programs too.
    const at::Tensor given = SquareEnds(leaf.tensor) ? leaf.tensor.to(Wider(leaf.tensor.scalar_type())) : leaf.tensor;
    leaf.tensor = WithStrides(Mirrored(given, moved), leaf.tensor.strides());
  }
  return nudged;
}

std::vector<Leaf> Neighbours(const std::vector<Leaf>& leaves, Random* random) {
  constexpr double kFar = 0x1p-12, kOfSpread = 1.0 / 16;
  std::vector<Leaf> moved;
  for (const Leaf& leaf : leaves) {
    moved.push_back(leaf);
    if (leaf.scalar || !Fractions(leaf.tensor) || leaf.tensor.is_complex() || KeepsMeaning(leaf.tensor)) continue;
    const at::ScalarType type = leaf.tensor.scalar_type();
    const at::Tensor wide = leaf.tensor.to(at::kDouble);
    const double spread = wide.std(/*unbiased=*/false).item<double>(), rms = wide.square().mean().sqrt().item<double>();
    const double size = std::max(std::min(kFar, kOfSpread * spread / rms), Spacing(type));
    const at::Tensor other = Nudge({leaf}, size, random).front().tensor;
    moved.back().tensor = WithStrides(other.to(type), leaf.tensor.strides());
  }
  return moved;
}

}  // namespace grove::judge
