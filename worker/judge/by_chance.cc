#include "worker/judge/by_chance.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>

#include "worker/judge/distributions.h"
#include "worker/judge/tensor_type.h"

namespace grove::judge {
namespace {

constexpr int kMostDraws = 15;
constexpr double kMostSeconds = 0.2;
constexpr std::int64_t kLarge = 1 << 16;                       // elements of which two draws say enough
constexpr std::int64_t kMostElements = std::int64_t{1} << 20;  // shuffled and sorted to look at them
constexpr std::int64_t kShort = 8;  // a dimension whose places may each mean something: from, to
constexpr double kFar = 5;          // standard deviations that chance does not go
constexpr double kMany = 40;        // of which half are missing in one case of thousands
constexpr double kHardly = 3;       // of which none may be there by chance
constexpr double kEnough = 8;       // where chance would give fewer, none says nothing

double Count(const at::Tensor& condition) { return static_cast<double>(condition.sum().item<std::int64_t>()); }

// Each draw's elements in any order.
at::Tensor Shuffled(const at::Tensor& draws, const at::Generator& generator) {
  const at::Tensor flat = draws.reshape({draws.size(0), -1});
  return flat.gather(1, std::get<1>(Uniform(flat, generator).sort(1))).reshape(draws.sizes());
}

at::Tensor Next(const at::Tensor& value, std::int64_t dim) { return value.narrow(dim, 1, value.size(dim) - 1); }
at::Tensor Former(const at::Tensor& value, std::int64_t dim) { return value.narrow(dim, 0, value.size(dim) - 1); }

// How many of the elements of rows along a dimension have come before in their row.
double Repeats(const at::Tensor& value, std::int64_t dim) {
  const at::Tensor sorted = std::get<0>(value.sort(dim));
  return Count(Next(sorted, dim).eq(Former(sorted, dim)));
}

// Of what may hold for all elements in all draws (dimension 0): for how many it does not, in an order that is that of
// every such tensor. `paddings`: values that may fill rows up; `beside`: what stands beside them in other inputs.
std::vector<double> Exceptions(const at::Tensor& draws, const std::vector<at::Tensor>& paddings,
                               const std::vector<at::Tensor>& beside) {
  std::vector<double> exceptions;
  const auto compare = [&](const at::Tensor& one, const at::Tensor& other) {
    exceptions.push_back(Count(one.gt(other)));
    exceptions.push_back(Count(one.lt(other)));
  };
  for (std::int64_t dim = 1; dim < draws.dim(); ++dim) {
    const std::int64_t size = draws.size(dim);
    std::vector<std::int64_t> shape(static_cast<std::size_t>(draws.dim()), 1);
    shape[static_cast<std::size_t>(dim)] = size;
    compare(draws, at::arange(size, draws.options()).view(shape));
    const at::Tensor sums = draws.sum(dim);
    exceptions.push_back(Count(sums.ne(sums.reshape({-1})[0])));
    for (const at::Tensor& padding : paddings) {
      const at::Tensor marked = draws.eq(padding);
      compare(Former(marked, dim), Next(marked, dim));
    }
    if (size > kShort) continue;
    for (std::int64_t i = 0; i < size; ++i) {
      for (std::int64_t j = 0; j < i; ++j) compare(draws.select(dim, i), draws.select(dim, j));
    }
  }
  for (const at::Tensor& other : beside) {  // of as many draws as there are of both
    const std::int64_t both = std::min(draws.size(0), other.size(0));
    compare(draws.narrow(0, 0, both), other.narrow(0, 0, both));
  }
  return exceptions;
}

// How many neighbours along a dimension rise, and how many are equal: too many or too few in what is sorted in parts.
bool OrderedAlong(const at::Tensor& draws, const at::Tensor& shuffled, std::int64_t dim) {
  const auto rises = [dim](const at::Tensor& value) { return Count(Next(value, dim).gt(Former(value, dim))); };
  const auto equals = [dim](const at::Tensor& value) { return Count(Next(value, dim).eq(Former(value, dim))); };
  const double pairs = static_cast<double>(Next(draws, dim).numel()), same = equals(shuffled);
  // Of a random order (n + 1) / 12 is the variance of how many rise; here are two of them.
  return std::fabs(rises(draws) - rises(shuffled)) > kFar * std::sqrt(pairs / 6) ||
         std::fabs(equals(draws) - same) > kFar * (1 + std::sqrt(2 * same)) || (same >= kEnough && equals(draws) == 0);
}

bool Ordered(const at::Tensor& draws, const at::Tensor& shuffled) {
  for (std::int64_t dim = 1; dim < draws.dim(); ++dim) {
    if (draws.size(dim) < 2) continue;
    if (OrderedAlong(draws, shuffled, dim)) return true;
    // One row of several may be in order, and the others in none.
    for (std::int64_t short_dim = 1; short_dim < draws.dim(); ++short_dim) {
      if (short_dim == dim || draws.size(short_dim) > kShort) continue;
      for (std::int64_t i = 0; i < draws.size(short_dim); ++i) {
        const std::int64_t left = dim > short_dim ? dim - 1 : dim;
        if (OrderedAlong(draws.select(short_dim, i), shuffled.select(short_dim, i), left)) return true;
      }
    }
  }
  return false;
}

// Places that have the same value in every draw, or that are a part of one and the same whole.
bool Constant(const at::Tensor& draws, const at::Tensor& shuffled) {
  const double same = Count(Next(shuffled, 0).eq(Former(shuffled, 0)));
  if (Count(Next(draws, 0).eq(Former(draws, 0))) - same > kFar * (1 + std::sqrt(2 * same))) return true;
  const at::Tensor sums = draws.reshape({draws.size(0), -1}).sum(1);
  return True(sums.eq(sums[0]).all());
}

// Whether values come twice along each dimension as often as chance would have it, among as many as there are: those
// that are each there once, but for a few, come less often. Where all of them are there, chance would leave out some.
// `if_seen`: not where they would come twice too seldom to say so. `adds`: neither where they would hardly ever.
bool Distinct(const at::Tensor& draws, bool if_seen, bool adds) {
  const double least = draws.min().item<double>(), values = draws.max().item<double>() - least + 1;
  const auto chance = [values](double size) { return size + values * std::expm1(size * std::log1p(-1 / values)); };
  for (std::int64_t dim = 1; dim < draws.dim(); ++dim) {
    const double size = static_cast<double>(draws.size(dim)), rows = static_cast<double>(draws.numel()) / size;
    if (size < 2) continue;
    const double expected = rows * chance(size);
    if (expected < kMany && if_seen) continue;
    if (expected < kMany && adds && (expected < kHardly || Repeats(draws, dim) > 0)) continue;
    if (expected < kMany || Repeats(draws, dim) < expected / 2) return true;
  }
  const at::Tensor flat = draws.reshape({draws.size(0), -1});
  const double size = static_cast<double>(flat.size(1)), all = static_cast<double>(flat.numel());
  const double missing = values * std::exp(-size / values) * static_cast<double>(flat.size(0));
  const double absent = values * static_cast<double>(flat.size(0)) - (all - Repeats(flat, 1));
  return (missing > kMany && absent < missing - kFar * std::sqrt(missing)) || (missing > kEnough && absent <= 0);
}

// How many places have the same numbers in all of these as one before them in their draw. (0 of numbers so far apart
// that 62 bits do not hold all.)
double RepeatsTogether(const std::vector<at::Tensor>& several) {
  at::Tensor all;
  double most = 1;
  for (const at::Tensor& one : several) {
    const at::Tensor flat = one.reshape({one.size(0), -1}), from = flat - flat.min();
    const double width = from.max().item<double>() + 1;
    most *= width;
    if (most > 0x1p62) return 0;
    all = all.defined() ? all * static_cast<std::int64_t>(width) + from : from;
  }
  return Repeats(all, 1);
}

// Two numbers that stand beside each other may be a place of a matrix: an edge, or a coordinate, that is there once (of
// edges drawn at random some are there twice, when each node has several), that is never on the diagonal, or that is
// there in both directions.
bool PairsMeanMore(const at::Tensor& one, const at::Tensor& other, const at::Tensor& other_shuffled) {
  if (RepeatsTogether({one, other}) == 0 || (!True(one.eq(other).any()) && Count(one.eq(other_shuffled)) >= kEnough))
    return true;
  const auto sorted = [](const at::Tensor& of) { return std::get<0>(of.reshape({of.size(0), -1}).sort(1)); };
  return sorted(one).equal(sorted(other));
}

// Whether `one` has the shape of `other` without this dimension, but for the number of draws.
bool Without(const at::Tensor& one, std::int64_t dim, const at::Tensor& other) {
  std::vector<std::int64_t> sizes = other.sizes().vec();
  sizes.erase(sizes.begin() + dim);
  return one.sizes().slice(1) == at::IntArrayRef(sizes).slice(1);
}

}  // namespace

bool Integers(const Leaf& leaf) {
  if (leaf.scalar) return false;
  const at::ScalarType type = leaf.tensor.scalar_type();
  return type == at::kInt || type == at::kLong;
}

Draws::Draws(const std::vector<Leaf>& first, const std::function<std::vector<Leaf>()>& draw) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  std::vector<std::vector<at::Tensor>> several(first.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (Integers(first[i]) && first[i].tensor.numel() <= kMostElements) several[i].push_back(first[i].tensor);
  }
  for (int one = 0; one < kMostDraws; ++one) {
    if (one > 0 && std::chrono::duration<double>(Clock::now() - begin).count() > kMostSeconds) break;
    const std::vector<Leaf> further = draw();
    for (std::size_t i = 0; i < first.size() && i < further.size(); ++i) {
      if (several[i].empty() || (one > 0 && first[i].tensor.numel() > kLarge)) continue;
      if (further[i].tensor.sizes() != first[i].tensor.sizes()) {
        several[i].clear();
      } else {
        several[i].push_back(further[i].tensor);
      }
    }
  }
  for (const auto& of_input : several) {
    stacked_.push_back(of_input.size() < 2 ? at::Tensor() : at::stack(of_input).to(at::kLong));
  }
}

std::vector<at::Tensor> Draws::Beside(std::size_t input) const {
  const at::Tensor& value = Of(input);
  std::vector<at::Tensor> beside;
  for (const at::Tensor& other : stacked_) {
    if (&other == &value || !other.defined() || other.numel() == 0) continue;
    if (other.sizes().slice(1) == value.sizes().slice(1)) beside.push_back(other);
    const std::int64_t dims = std::max(value.dim(), other.dim());
    for (const std::int64_t dim : {std::int64_t{1}, dims - 1}) {
      if (other.dim() + 1 == value.dim() && Without(other, dim, value)) beside.push_back(other.unsqueeze(dim));
      if (value.dim() + 1 == other.dim() && Without(value, dim, other)) {
        beside.push_back(other.amin(dim));
        beside.push_back(other.amax(dim));
      }
    }
  }
  return beside;
}

bool Draws::ByChance(std::size_t input, const Indices& indices, const at::Generator& generator) const {
  const at::Tensor &draws = Of(input), shuffled = Shuffled(draws, generator);
  if (Constant(draws, shuffled) || Ordered(draws, shuffled)) return false;
  const std::vector<at::Tensor> beside = Beside(input);
  const std::vector<at::Tensor> paddings = {draws.min(), draws.max(), draws.reshape({-1})[draws.numel() - 1]};
  const std::vector<double> own = Exceptions(draws, paddings, beside), chance = Exceptions(shuffled, paddings, beside);
  for (std::size_t one = 0; one < own.size(); ++one) {
    if (own[one] == 0 && chance[one] >= kEnough) return false;
  }
  if (indices.use == Indices::Use::kLabels) return true;
  const bool names = indices.use == Indices::Use::kNames;
  if (Distinct(draws, names, indices.adds)) return false;
  if (names) return true;
  for (std::int64_t dim = 1; dim < draws.dim(); ++dim) {
    const std::int64_t size = draws.dim() > 2 && draws.size(dim) <= kShort ? draws.size(dim) : 0;
    if (size > 2 && RepeatsTogether(draws.unbind(dim)) == 0 && RepeatsTogether(shuffled.unbind(dim)) >= kEnough)
      return false;
    for (std::int64_t a = 0; a < size; ++a) {
      for (std::int64_t b = 0; b < a; ++b) {
        if (PairsMeanMore(draws.select(dim, a), draws.select(dim, b), shuffled.select(dim, b))) return false;
      }
    }
  }
  std::vector<at::Tensor> together = {draws}, by_chance = {shuffled};
  for (const at::Tensor& other : beside) {
    if (other.sizes() != draws.sizes()) continue;
    together.push_back(other);
    by_chance.push_back(Shuffled(other, generator));
    if (PairsMeanMore(draws, other, by_chance.back())) return false;
  }
  return together.size() < 3 || RepeatsTogether(together) != 0 || RepeatsTogether(by_chance) < kEnough;
}

}  // namespace grove::judge
