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

constexpr std::int64_t kFewExact = 16;    // that two draws have alike by chance
constexpr std::int64_t kFewOfMasks = 64;  // the same, of flags of which nine of ten are alike
constexpr double kPart = 4;               // of a row, at most
constexpr double kLess = 0.75;
constexpr double kLetsNothing = -64;  // added to scores: who is masked has no part in a softmax

bool True(const at::Tensor& condition) { return condition.item<bool>(); }

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
  constexpr double kNear = 1e-2;
  for (std::int64_t dim = 0; dim < value.dim(); ++dim) {
    const auto size = static_cast<double>(value.size(dim));
    if (size < 2) continue;
    for (const double sum : {first * size, std::exp(first) * size, first * first * size}) {
      if (std::fabs(sum - 1) < kNear) return true;
    }
  }
  return false;
}

// What takes integers for places, or divides them: a zero may be none, or may not be divided by.
bool TakesIndices(const json& graph) {
  if (!graph.is_array() || graph.empty()) return true;
  return std::any_of(graph.begin(), graph.end(), [](const json& operation) {
    const std::string kind = operation.value("kind", "");
    for (const char* part : {"embedding", "index", "gather", "scatter", "take", "one_hot", "nll_loss", "cross_entropy",
                             "bincount", "floor_divide", "remainder", "fmod"}) {
      if (kind.find(part) != std::string::npos) return true;
    }
    return false;
  });
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

at::Tensor Ends(const at::Tensor& like, Random* random) {
  const std::int64_t along = RowsOf(like);
  if (like.dim() == 0 || like.size(along) == 1) return at::ones_like(like, like.options().dtype(at::kBool));
  const std::int64_t size = like.size(along);
  const auto most = std::max<std::int64_t>(static_cast<std::int64_t>(static_cast<double>(size) / kPart), 1);
  std::vector<std::int64_t> rows = like.sizes().vec(), place(rows.size(), 1);
  rows[static_cast<std::size_t>(along)] = 1;
  place[static_cast<std::size_t>(along)] = size;
  const auto options = at::TensorOptions().device(like.device()).dtype(at::kFloat);
  const at::Generator generator = MakeGenerator(like.device(), random->Next() >> 1);
  const at::Tensor lengths = at::rand(rows, generator, options).mul_(static_cast<double>(most + 1)).floor_();
  // One row has some in any case.
  const auto which = static_cast<std::int64_t>(random->Below(static_cast<std::uint64_t>(lengths.numel())));
  const auto some = static_cast<double>(1 + random->Below(static_cast<std::uint64_t>(most)));
  lengths.view({-1})[which].fill_(some);
  const at::Tensor ends = at::arange(size - 1, -1, -1, options).view(place).lt(lengths).contiguous();
  return SymmetricMatrix(like) ? ends.logical_or(ends.transpose(-1, -2)) : ends;
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

// The value of a mask beside zero.
std::optional<at::Scalar> MaskOf(const at::Tensor& value) {
  if (value.numel() < kFewOfMasks || value.is_complex() || True(value.isnan().any())) return std::nullopt;
  const at::Tensor zero = value.eq(0);
  if (True(zero.all()) || !True(zero.any())) return std::nullopt;
  // (Flags and half types have no least value in every torch.)
  const at::Tensor numbers = value.to(value.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
  const at::Tensor least = numbers.min(), largest = numbers.max();
  const bool ones = True(largest.eq(1)) && True(least.eq(0));
  if (!ones && (!True(largest.eq(0)) || !True(least.le(kLetsNothing)))) return std::nullopt;
  const at::Tensor one = ones ? largest : least;
  if (!True(zero.logical_or(numbers.eq(one)).all())) return std::nullopt;
  for (std::int64_t dim = 0; dim < value.dim(); ++dim) {
    if (value.size(dim) > 1 && True(zero.logical_not().sum(dim).eq(1).all())) return std::nullopt;
  }
  return one.item();
}

// Rows that had both values keep what they had where they would have one alone.
at::Tensor Filled(const at::Tensor& value, const at::Tensor& ends, const at::Scalar& with) {
  const at::Tensor made = at::where(ends, at::full_like(value, with), value);
  const std::int64_t along = RowsOf(value);
  const auto one = [&](const at::Tensor& of) { return of.eq(of.narrow(along, 0, 1)).all(along, /*keepdim=*/true); };
  at::Tensor kept = one(made).logical_and(one(value).logical_not());
  if (SymmetricMatrix(value)) kept = kept.logical_or(kept.transpose(-1, -2));
  return at::where(kept, value, made);
}

// What most rows end with is what says that there is nothing: more of that makes them shorter.
std::optional<at::Tensor> OthersOfTwo(bool less, const at::Scalar& one, const at::Tensor& value, Random* random) {
  const at::Tensor ends = Ends(value, random);
  const at::Tensor last = value.select(RowsOf(value), -1).eq(0);
  const bool zeros = last.sum().item<std::int64_t>() * 2 > last.numel();
  for (const bool zero : {zeros, !zeros}) {
    if (less && zero == zeros) continue;
    at::Tensor made = Filled(value, ends, zero ? at::Scalar(0) : one);
    if (!made.equal(value)) return made;
  }
  return std::nullopt;
}

std::optional<at::Tensor> Others(bool less, const at::Tensor& value, Random* random) {
  if (AllAlike(value)) return OthersOfOne(less, value, random);
  const std::optional<at::Scalar> one = MaskOf(value);
  return one ? OthersOfTwo(less, *one, value, random) : std::nullopt;
}

bool CanBeOthers(const at::Tensor& value, const json& graph) {
  const bool number = !Fractions(value) && value.scalar_type() != at::kBool;
  if (!AllAlike(value)) return MaskOf(value).has_value() && !(number && TakesIndices(graph));
  if (Fractions(value)) return True(at::isfinite(FirstOf(value))) && !MeansMoreAlike(value);
  return value.numel() >= kFewExact && !(number && (!True(FirstOf(value).eq(1)) || TakesIndices(graph)));
}

}  // namespace

std::vector<std::size_t> FixedInputs(const std::vector<Leaf>& one, const std::vector<Leaf>& other, const json& graph) {
  std::vector<std::size_t> fixed;
  for (std::size_t i = 0; i < one.size() && i < other.size(); ++i) {
    const at::Tensor& value = one[i].tensor;
    if (one[i].scalar || other[i].scalar || !value.equal(other[i].tensor)) continue;
    if (CanBeOthers(value, graph)) fixed.push_back(i);
  }
  return fixed;
}

Transformed MakeOthers(int form, const std::vector<std::size_t>& fixed, Random* random, std::vector<Leaf>* leaves) {
  Transformed result;
  const std::size_t which = WhichFixed(form);
  Leaf* leaf = which < fixed.size() && fixed[which] < leaves->size() ? &(*leaves)[fixed[which]] : nullptr;
  // (In another shape it may be empty, or have values of other kinds.)
  std::optional<at::Tensor> made;
  if (leaf != nullptr && !leaf->scalar) made = Others(LessFixed(form), leaf->tensor, random);
  if (!made) {
    result.skipped = kTried;
    return result;
  }
  const bool one = AllAlike(leaf->tensor);
  leaf->tensor = WithStrides(*made, leaf->tensor.strides());
  result.how = one ? "an input that is alike in all elements with others at the end of its rows"
                   : "a mask that is the same in every draw with others at the end of its rows";
  return result;
}

}  // namespace grove::judge
