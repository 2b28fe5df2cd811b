#include "worker/judge/few_integers.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "worker/judge/by_chance.h"
#include "worker/judge/tensor_type.h"

namespace grove::judge {
namespace {

constexpr std::int64_t kShortest = 8;  // along the dimension that values are taken from
constexpr double kFew = 4;
constexpr double kCrowded = 3;  // 0.63 of all
constexpr std::size_t kMostNamed = 4;

// One of the four for each element; `crowded`: the first of them for most.
at::Tensor OfFour(const at::Tensor& value, bool crowded, Random* random, const at::Generator& generator) {
  const auto sizes = value.sizes();
  const std::int64_t along = std::max_element(sizes.begin(), sizes.end()) - sizes.begin();
  const auto any = [&] {
    return value.narrow(along, static_cast<std::int64_t>(random->Below(static_cast<std::uint64_t>(value.size(along)))),
                        1);
  };
  at::Tensor which = Uniform(value, generator);
  if (crowded) which.pow_(kCrowded);
  which.mul_(kFew).floor_();
  at::Tensor made = at::where(which.eq(0), value.amin(along, /*keepdim=*/true), value.amax(along, /*keepdim=*/true));
  for (const double place : {2.0, 3.0}) made = at::where(which.eq(place), any(), made);
  return made;
}

// Those of these numbers that the type holds.
std::vector<std::int64_t> Held(const std::vector<double>& numbers, at::ScalarType type) {
  std::vector<std::int64_t> held;
  const double limit = type == at::kInt ? 0x1p31 : 0x1p53;
  for (double one : numbers) {
    if (std::fabs(one) < limit && held.size() < kMostNamed) held.push_back(static_cast<std::int64_t>(one));
  }
  return held;
}

at::Tensor OfFew(int form, const at::Tensor& value, const Indices& indices, Random* random,
                 const at::Generator& generator) {
  at::Tensor made = OfFour(value, form == kOfFewAgain && indices.adds, random, generator);
  std::vector<std::int64_t> named = Held(indices.named, value.scalar_type());
  const std::vector<std::int64_t> compared = Held(indices.compared, value.scalar_type());
  if (value.dim() > 1 && !compared.empty()) {
    // As padding stands: at the ends of rows, up to a quarter of each.
    const std::int64_t size = value.size(-1);
    const at::Tensor lengths =
        Uniform(value.narrow(-1, 0, 1), generator).mul_(static_cast<double>(size) / kFew + 1).floor_();
    const at::Tensor ends = at::arange(size, value.options().dtype(at::kFloat)).ge(static_cast<double>(size) - lengths);
    made = made.masked_fill(ends, compared[random->Below(compared.size())]);
  } else {
    named.insert(named.end(), compared.begin(), compared.end());
  }
  // Each as often as the four together, but for one place of each row, so that none is nothing else.
  const at::Tensor which = Uniform(value, generator).mul_(static_cast<double>(named.size()) + 1).floor_();
  if (value.dim() > 0) {
    const auto kept = random->Below(static_cast<std::uint64_t>(value.size(-1)));
    which.select(-1, static_cast<std::int64_t>(kept)).fill_(static_cast<double>(named.size()));
  }
  for (std::size_t one = 0; one < named.size(); ++one) {
    made = made.masked_fill(which.eq(static_cast<double>(one)), named[one]);
  }
  return made;
}

bool Expanded(const at::Tensor& value) {
  for (std::int64_t dim = 0; dim < value.dim(); ++dim) {
    if (value.stride(dim) == 0 && value.size(dim) > 1) return true;
  }
  return false;
}

}  // namespace

Transformed MakeFewIntegers(int form, const std::vector<Indices>& indices,
                            const std::function<std::vector<Leaf>()>& draw, Random* random, std::vector<Leaf>* leaves,
                            double* crowded) {
  const std::vector<Leaf> given = *leaves;
  std::optional<Draws> draws;
  bool changed = false;
  for (std::size_t i = 0; i < given.size() && i < indices.size(); ++i) {
    const at::Tensor& value = given[i].tensor;
    if (indices[i].use == Indices::Use::kOther || !Integers(given[i]) || value.dim() == 0 || Expanded(value)) continue;
    if (*std::max_element(value.sizes().begin(), value.sizes().end()) < kShortest || value.numel() == 0) continue;
    if (!draws) draws.emplace(given, draw);
    if (!draws->Of(i).defined()) continue;
    const at::Generator generator = MakeGenerator(value.device(), random->Next() >> 1);
    if (!draws->ByChance(i, indices[i], generator)) continue;
    const at::Tensor made = OfFew(form, value, indices[i], random, generator);
    if (made.equal(value)) continue;
    (*leaves)[i].tensor = WithStrides(made, value.strides());
    changed = true;
    if (indices[i].adds) *crowded = std::max(*crowded, static_cast<double>(value.numel()));
  }
  if (!changed) {
    return {.how = "", .skipped = "indices and labels are not known to be as chance would have it, and stay as drawn"};
  }
  return {.how = "indices and labels of few of their own values, and of those that the program names", .skipped = ""};
}

}  // namespace grove::judge
