#include "worker/judge/alike_inputs.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "worker/judge/tensor_type.h"

namespace grove::judge {
namespace {

using nlohmann::json;

constexpr std::int64_t kFewExact = 16;  // that two draws have alike by chance
constexpr double kPart = 4;             // of a row, at most
constexpr double kLess = 0.75;

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

at::Tensor Ends(const at::Tensor& like, Random* random) {
  std::int64_t along = like.dim() - 1;
  while (along > 0 && like.size(along) == 1) --along;
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
  const bool square = like.dim() > 1 && like.size(-1) == like.size(-2);
  return square ? ends.logical_or(ends.transpose(-1, -2)) : ends;
}

std::optional<at::Tensor> Others(bool less, const at::Tensor& value, Random* random) {
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

}  // namespace

std::vector<std::size_t> AlikeInputs(const std::vector<Leaf>& one, const std::vector<Leaf>& other, const json& graph) {
  std::vector<std::size_t> alike;
  for (std::size_t i = 0; i < one.size() && i < other.size(); ++i) {
    const at::Tensor& value = one[i].tensor;
    if (one[i].scalar || other[i].scalar || !AllAlike(value) || !value.equal(other[i].tensor)) continue;
    if (Fractions(value)) {
      if (!True(at::isfinite(FirstOf(value))) || MeansMoreAlike(value)) continue;
    } else if (value.numel() < kFewExact) {
      continue;
    } else if (value.scalar_type() != at::kBool && (!True(FirstOf(value).eq(1)) || TakesIndices(graph))) {
      continue;
    }
    alike.push_back(i);
  }
  return alike;
}

Transformed MakeAlike(int form, const std::vector<std::size_t>& alike, Random* random, std::vector<Leaf>* leaves) {
  Transformed result;
  const std::size_t which = WhichAlike(form);
  Leaf* leaf = which < alike.size() && alike[which] < leaves->size() ? &(*leaves)[alike[which]] : nullptr;
  // (In another shape it may be empty, or not alike.)
  std::optional<at::Tensor> made;
  if (leaf != nullptr && !leaf->scalar && AllAlike(leaf->tensor)) made = Others(LessAlike(form), leaf->tensor, random);
  if (!made) {
    result.skipped = kTried;
    return result;
  }
  leaf->tensor = WithStrides(*made, leaf->tensor.strides());
  result.how = "an input that is alike in all elements with others at the end of its rows";
  return result;
}

}  // namespace grove::judge
