#include "worker/judge/fixed_inputs.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "worker/judge/tensor_type.h"

namespace grove::judge {
namespace {

using nlohmann::json;

constexpr std::int64_t kFewExact = 16;    // integers that two draws have alike by chance
constexpr std::int64_t kFewOfMasks = 64;  // the same, of flags of which nine of ten are alike
constexpr double kPart = 4;               // of a row, at most
constexpr double kLess = 0.75;
constexpr double kBand = 0.25;        // share of zeros beside which the others have places
constexpr double kNear = 1e-2;        // so far sums of what was made in a half type may be from one
constexpr double kLetsNothing = -64;  // added to scores: who is masked has no part in a softmax

at::Tensor FirstOf(at::Tensor value) {
  while (value.dim() > 0) value = value.select(0, 0);
  return value;
}

bool AllAlike(const at::Tensor& value) {
  if (value.numel() == 0) return false;
  const at::Tensor first = FirstOf(value);
  // (Of most inputs the first row says that they are not.)
  const at::Tensor row = value.dim() > 0 ? value.select(0, 0) : value;
  return True(row.eq(first).all()) && True(value.eq(first).all());
}

// Probabilities of things that are equally likely, their logarithms, directions.
bool MeansMoreAlike(const at::Tensor& value) {
  if (!Fractions(value) || value.is_complex()) return false;
  const double first = FirstOf(value).to(at::kDouble).item<double>();
  for (std::int64_t dim = 0; dim < value.dim(); ++dim) {
    const auto size = static_cast<double>(value.size(dim));
    if (size < 2) continue;
    for (const double sum : {first * size, std::exp(first) * size, first * first * size}) {
      if (std::fabs(sum - 1) < kNear) return true;
    }
  }
  return false;
}

bool Has(const json& graph, const char* part) {
  return std::any_of(graph.begin(), graph.end(), [&](const json& operation) {
    return operation.value("kind", "").find(part) != std::string::npos;
  });
}

// What takes integers for places, or divides them: a zero may be none, or may not be divided by.
bool TakesIndices(const json& graph) {
  if (!graph.is_array() || graph.empty()) return true;
  for (const char* part : {"embedding", "index", "gather", "scatter", "take", "one_hot", "nll_loss", "cross_entropy",
                           "bincount", "floor_divide", "remainder", "fmod"}) {
    if (Has(graph, part)) return true;
  }
  return false;
}

// The last dimension that has more than one place.
std::int64_t RowsOf(const at::Tensor& value) {
  std::int64_t along = value.dim() - 1;
  while (along > 0 && value.size(along) == 1) --along;
  return along;
}

bool SymmetricMatrix(const at::Tensor& value) {
  return value.dim() > 1 && value.size(-1) == value.size(-2) && value.equal(value.transpose(-1, -2));
}

std::int64_t MostOf(std::int64_t size) {
  return std::max<std::int64_t>(static_cast<std::int64_t>(static_cast<double>(size) / kPart), 1);
}

std::int64_t OneTo(std::int64_t most, Random* random) {
  return 1 + static_cast<std::int64_t>(random->Below(static_cast<std::uint64_t>(most)));
}

// Whole numbers from zero to `most`, one for each row (a last dimension of one).
at::Tensor Lengths(const at::Tensor& rows, std::int64_t most, Random* random) {
  const at::Generator generator = MakeGenerator(rows.device(), random->Next() >> 1);
  const auto options = at::TensorOptions().device(rows.device()).dtype(at::kFloat);
  return at::rand(rows.sizes(), generator, options).mul_(static_cast<double>(most + 1)).floor_().to(at::kInt);
}

at::Tensor Ends(const at::Tensor& like, Random* random) {
  const std::int64_t along = RowsOf(like);
  if (like.dim() == 0 || like.size(along) == 1) return at::ones_like(like, like.options().dtype(at::kBool));
  const std::int64_t size = like.size(along), most = MostOf(size);
  const at::Tensor places = at::arange(size, at::TensorOptions().device(like.device()).dtype(at::kInt));
  if (SymmetricMatrix(like)) {
    const at::Tensor last = places.ge(size - OneTo(most, random)), rows = last.unsqueeze(-1);
    return last.logical_or(rows).logical_and(places.ne(places.unsqueeze(-1))).expand(like.sizes());
  }
  const at::Tensor row = like.movedim(along, -1);
  at::Tensor lengths = Lengths(row.narrow(-1, 0, 1), most, random);
  // One row has some in any case.
  const auto which = static_cast<std::int64_t>(random->Below(static_cast<std::uint64_t>(lengths.numel())));
  lengths.view({-1})[which].fill_(OneTo(most, random));
  return places.ge(size - lengths).movedim(-1, along);
}

std::optional<at::Tensor> OthersOfOne(bool less, const at::Tensor& value, Random* random) {
  const at::Tensor first = FirstOf(value);
  const bool zero = True(first.eq(0));
  if (less && (zero || !Fractions(value))) return std::nullopt;
  at::Tensor others = zero ? at::ones_like(value) : at::zeros_like(value);
  if (less) {
    others = value * kLess;
    const bool whole = !value.is_complex() && True(first.eq(first.floor())) && True(first.abs().ge(2));
    if (whole) others = others.floor();
  }
  return at::where(Ends(value, random), others, value);
}

// Zeros and one other value that masks have.
bool IsMask(const at::Tensor& value) {
  if (value.numel() == 0 || value.is_complex()) return false;
  const at::Tensor zero = value.eq(0);
  if (True(zero.all()) || !True(zero.any())) return false;
  for (std::int64_t dim = 0; dim < value.dim(); ++dim) {
    if (value.size(dim) > 1 && True(zero.logical_not().sum(dim).eq(1).all())) return false;
  }
  if (value.scalar_type() == at::kBool || True(zero.logical_or(value.eq(1)).all())) return true;
  if (!Fractions(value) || !True(zero.logical_or(value.le(kLetsNothing)).all())) return false;
  // (Half types have no least value in every torch.)
  const at::Tensor least = value.to(value.scalar_type() == at::kDouble ? at::kDouble : at::kFloat).min();
  return True(zero.logical_or(value.eq(least)).all());
}

// What a row ends with goes on for longer: prefixes, suffixes and intervals stay such. Each keeps one of the others.
std::optional<at::Tensor> LongerRuns(const at::Tensor& value, Random* random) {
  const std::int64_t along = RowsOf(value), most = MostOf(value.size(along));
  const at::Tensor row = value.movedim(along, -1), last = row.narrow(-1, row.size(-1) - 1, 1);
  const at::Tensor differs = row.ne(last), count = differs.sum(-1, /*keepdim=*/true);
  const at::Tensor can = count.ge(2).reshape({-1}).nonzero();
  if (can.numel() == 0) return std::nullopt;
  const at::Tensor places = at::arange(row.size(-1), at::TensorOptions().device(row.device()).dtype(at::kInt));
  const at::Tensor begin = at::where(differs, places + 1, at::zeros_like(places)).amax(-1, /*keepdim=*/true);
  at::Tensor lengths = Lengths(last, most, random).contiguous();
  const auto which = can[OneTo(can.size(0), random) - 1].item<std::int64_t>();  // it has some in any case
  const auto others = count.reshape({-1})[which].item<std::int64_t>() - 1;
  lengths.view({-1})[which].fill_(OneTo(std::min(most, others), random));
  const at::Tensor made = at::where(places.ge(begin - lengths).logical_and(places.lt(begin)), last, row);
  const at::Tensor gone = made.eq(last).all(-1, /*keepdim=*/true);
  return at::where(gone, row, made).movedim(-1, along).contiguous();
}

std::optional<at::Tensor> OthersOfTwo(const at::Tensor& value, Random* random) {
  const at::Tensor ends = Ends(value, random);
  if (SymmetricMatrix(value)) {
    // As where the last ones have to do with nobody but themselves.
    const at::Tensor corner = value.narrow(-2, 0, 1).narrow(-1, value.size(-1) - 1, 1);
    at::Tensor made = at::where(ends, corner, value);
    if (!made.equal(value)) return made;
  } else if (auto longer = LongerRuns(value, random)) {
    return longer;
  }
  at::Tensor made = at::where(ends, at::zeros_like(value), value);  // rows that are alike
  return made.equal(value) ? std::nullopt : std::optional(made);
}

// Weights that sum to one: so do their roots, scaled. What is in order, the same from both ends, a Gaussian, a
// geometric series or a product of two of them stays such.
at::Tensor OtherWeights(const at::Tensor& value, std::int64_t dim) {
  const at::Tensor sums = value.sum(dim, /*keepdim=*/true), roots = value.sqrt();
  return roots * (sums / roots.sum(dim, /*keepdim=*/true));
}

// The dimension over which they do: the last one or the second.
std::optional<std::int64_t> SumsToOne(const at::Tensor& value) {
  if (!True(value.ge(0).all())) return std::nullopt;
  for (std::int64_t dim : {value.dim() - 1, std::int64_t{1}}) {
    if (dim < value.dim() && True((value.sum(dim) - 1).abs().le(kNear).all())) return dim;
  }
  return std::nullopt;
}

// Directions and filters without a mean: so they are from the other end, and at right angles to each other where they
// were. (A rotation would become a reflection.)
std::optional<at::Tensor> Turned(const at::Tensor& value) {
  if (True(value.le(0).all()) || True(value.eq(value.round()).all())) return std::nullopt;
  // A band would be another one.
  if (value.eq(0).sum().item<double>() > kBand * static_cast<double>(value.numel())) return std::nullopt;
  if (value.dim() > 1 && value.size(-1) == value.size(-2)) return std::nullopt;
  for (std::int64_t dim = 0; dim < value.dim(); ++dim) {
    if (value.size(dim) > 1 && (IsSorted(value, dim) || IsSorted(value.flip(dim), dim))) return std::nullopt;
  }
  at::Tensor made = value.flip(-1);
  return made.equal(value) ? std::nullopt : std::optional(made);
}

// What says more than its values do (all other distributions leave it as drawn), so that it still says that.
std::optional<at::Tensor> OthersOfItsKind(const at::Tensor& value) {
  if (!Fractions(value) || value.is_complex() || value.dim() == 0 || value.numel() == 0) return std::nullopt;
  if (!KeepsMeaning(value) || !True(at::isfinite(value).all()) || SymmetryOf(value) != Symmetry::kNone) {
    return std::nullopt;
  }
  const at::Tensor wide = IsHalf(value.scalar_type()) ? value.to(at::kFloat) : value;
  std::optional<at::Tensor> made;
  if (const auto dim = SumsToOne(wide)) {
    made = OtherWeights(wide, *dim);
    if (at::allclose(*made, wide, kNear)) made.reset();  // equal ones, and zeros beside them
  } else {
    made = Turned(wide);
  }
  return made ? std::optional(made->to(value.scalar_type())) : std::nullopt;
}

std::optional<at::Tensor> Others(bool less, const at::Tensor& value, Random* random) {
  if (AllAlike(value)) return OthersOfOne(less, value, random);
  if (less) return std::nullopt;
  return IsMask(value) ? OthersOfTwo(value, random) : OthersOfItsKind(value);
}

bool CanBeOthers(const at::Tensor& value, const json& graph) {
  const bool flags = value.scalar_type() == at::kBool, number = !Fractions(value) && !flags;
  // More places than there are values for them is an error, on a GPU one that it does not survive.
  if (flags && Has(graph, "masked_scatter")) return false;
  if (!AllAlike(value)) {
    if (!IsMask(value)) return OthersOfItsKind(value).has_value();
    return value.numel() >= kFewOfMasks && !(number && TakesIndices(graph));
  }
  if (Fractions(value)) return True(at::isfinite(FirstOf(value))) && !MeansMoreAlike(value);
  // (Flags that chance made alike may be others as well. One alone may be a length.)
  if (flags) return value.numel() > 1;
  return value.numel() >= kFewExact && True(FirstOf(value).eq(1)) && !TakesIndices(graph);
}

// One of the places that get_inputs() expanded, which hold one number.
at::Tensor AsMade(const Leaf& leaf) {
  at::Tensor value = leaf.tensor;
  for (std::size_t dim = 0; dim < leaf.made_strides.size(); ++dim) {
    const auto d = static_cast<std::int64_t>(dim);
    if (leaf.made_strides[dim] == 0 && value.size(d) > 1) value = value.narrow(d, 0, 1);
  }
  return value;
}

}  // namespace

std::vector<std::size_t> FixedInputs(const std::vector<Leaf>& one, const std::vector<Leaf>& other, const json& graph) {
  std::vector<std::size_t> fixed;
  for (std::size_t i = 0; i < one.size() && i < other.size(); ++i) {
    const at::Tensor& value = one[i].tensor;
    if (one[i].scalar || other[i].scalar || !value.equal(other[i].tensor)) continue;
    try {
      if (CanBeOthers(value, graph)) fixed.push_back(i);
    } catch (const c10::Error&) {
      // No memory to look.
    }
  }
  return fixed;
}

Transformed MakeOthers(int form, const std::vector<std::size_t>& fixed, Random* random, std::vector<Leaf>* leaves) {
  Transformed result;
  const std::size_t which = WhichFixed(form);
  Leaf* leaf = which < fixed.size() && fixed[which] < leaves->size() ? &(*leaves)[fixed[which]] : nullptr;
  // (In another shape it may be empty, or have values of other kinds.)
  std::optional<at::Tensor> made;
  if (leaf != nullptr && !leaf->scalar) made = Others(LessFixed(form), AsMade(*leaf), random);
  if (!made) {
    result.skipped = kTried;
    return result;
  }
  const bool one = AllAlike(leaf->tensor), two = !one && IsMask(leaf->tensor);
  leaf->tensor = WithStrides(made->expand(leaf->tensor.sizes()), leaf->tensor.strides());
  result.how = one   ? "an input that is alike in all elements with others at the end of its rows"
               : two ? "a mask that is the same in every draw with others at the end of its rows"
                     : "an input that is the same in every draw with other values of its kind";
  return result;
}

}  // namespace grove::judge
