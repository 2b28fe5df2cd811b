#include "worker/judge/meeting.h"

#include <ATen/ATen.h>

#include <optional>
#include <set>

#include "worker/judge/rare_values.h"
#include "worker/judge/tensor_type.h"

namespace grove::judge {
namespace {

constexpr double kShare = 1.0 / 16;
constexpr std::int64_t kFew = 64;  // of fewer, chance makes some sorted

bool Broadcasts(const at::Tensor& from, const at::Tensor& to) {
  if (from.dim() > to.dim()) return false;
  for (std::int64_t dim = 1; dim <= from.dim(); ++dim) {
    if (from.size(-dim) != 1 && from.size(-dim) != to.size(-dim)) return false;
  }
  return true;
}

// Whether elements may be others, and nothing has to be equal to the whole.
bool Free(const std::vector<Leaf>& leaves, std::size_t which) {
  const Leaf& leaf = leaves[which];
  if (leaf.scalar || leaf.tensor.numel() < kFew || KeepsMeaning(leaf.tensor) || HasManyZeros(leaf.tensor)) return false;
  if (SymmetryOf(leaf.tensor) != Symmetry::kNone || EarlierEqual(leaves, which)) return false;
  for (std::size_t i = which + 1; i < leaves.size(); ++i) {
    if (EarlierEqual(leaves, i) == which) return false;
  }
  return true;
}

std::optional<at::Tensor> With(const at::Tensor& value, const at::Tensor& other, Random* random) {
  if (!True(at::isfinite(other).all()) || other.numel() == 0) return std::nullopt;
  const at::Generator generator = MakeGenerator(value.device(), random->Next() >> 1);
  const at::Tensor any =
      at::randint(other.numel(), value.sizes(), generator, at::TensorOptions().device(value.device()).dtype(at::kLong));
  const bool by_rows =
      other.dim() == value.dim() && other.sizes().slice(0, other.dim() - 1) == value.sizes().slice(0, value.dim() - 1);
  at::Tensor others = by_rows ? other.gather(-1, any.remainder(other.size(-1))) : other.reshape({-1}).index({any});
  // (Where shapes agree by chance, as of a table of edges, any place will do.)
  if (Broadcasts(other, value)) others = at::where(Uniform(value, generator).lt(0.5), other.expand_as(value), others);
  const at::Tensor chosen =
      Uniform(value, generator).lt(kShare).logical_and(others.ge(value.min())).logical_and(others.le(value.max()));
  return True(chosen.any()) ? std::optional(at::where(chosen, others, value)) : std::nullopt;
}

}  // namespace

Transformed MakeMeeting(const RareValues& rare, Random* random, std::vector<Leaf>* leaves) {
  Transformed result;
  std::set<std::size_t> met;
  for (const auto& [to, from] : rare.compared) {
    if (to >= leaves->size() || from >= leaves->size() || met.count(to) != 0 || met.count(from) != 0) continue;
    Leaf& leaf = (*leaves)[to];
    const Leaf& other = (*leaves)[from];
    if (other.scalar || leaf.tensor.scalar_type() != other.tensor.scalar_type() || !Free(*leaves, to)) continue;
    const auto made = With(leaf.tensor, other.tensor, random);
    if (!made) continue;
    leaf.tensor = WithStrides(*made, leaf.tensor.strides());
    met.insert({to, from});
  }
  if (met.empty()) {
    result.skipped = "inputs that are compared with each other are of different types or mean something";
  } else {
    result.how = "some elements of an input equal to those of another that it is compared with";
  }
  return result;
}

}  // namespace grove::judge
