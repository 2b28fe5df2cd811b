#include "worker/judge/few_integers.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>

#include "worker/judge/tensor_type.h"

namespace grove::judge {
namespace {

constexpr std::int64_t kShortest = 8;  // along the dimension that values are taken from
constexpr std::int64_t kShort = 8;     // a dimension whose places may each mean something: from, to
constexpr double kFew = 4;
constexpr std::size_t kMostNamed = 4;
constexpr std::int64_t kMostElements = std::int64_t{1} << 20;  // shuffled and sorted to look at them
constexpr double kFar = 5;                                     // standard deviations that chance does not go
constexpr double kMany = 40;                                   // of which half are missing in one case of thousands
constexpr double kEnough = 8;                                  // where chance would give fewer, none says nothing

bool True(const at::Tensor& condition) { return condition.item<bool>(); }
double Count(const at::Tensor& condition) { return static_cast<double>(condition.sum().item<std::int64_t>()); }

bool Integers(const Leaf& leaf) {
  const at::ScalarType type = leaf.tensor.scalar_type();
  return !leaf.scalar && (type == at::kInt || type == at::kLong);
}

// Of each integer input what several draws gave, one behind the other in a dimension before its own: as many as there
// is time for, and two of what is large. Undefined for all others, and where shapes differ.
class Draws {
 public:
  Draws(const std::vector<Leaf>& first, const std::function<std::vector<Leaf>()>& draw) {
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

  const at::Tensor& Of(std::size_t i) const { return stacked_.at(i); }

 private:
  static constexpr int kMostDraws = 15;
  static constexpr double kMostSeconds = 0.2;
  static constexpr std::int64_t kLarge = 1 << 16;  // elements that say enough

  std::vector<at::Tensor> stacked_;
};

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
bool Distinct(const at::Tensor& draws) {
  const double least = draws.min().item<double>(), values = draws.max().item<double>() - least + 1;
  const auto chance = [values](double size) { return size + values * std::expm1(size * std::log1p(-1 / values)); };
  for (std::int64_t dim = 1; dim < draws.dim(); ++dim) {
    const double size = static_cast<double>(draws.size(dim)), rows = static_cast<double>(draws.numel()) / size;
    if (size < 2) continue;
    const double expected = rows * chance(size);
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

// What other inputs have beside an input's elements: those of its shape, one number for each of its rows (a place and a
// length), and the ends of what stands in theirs (a length and places).
std::vector<at::Tensor> Beside(const Draws& draws, std::size_t inputs, std::size_t i) {
  const at::Tensor& value = draws.Of(i);
  std::vector<at::Tensor> beside;
  for (std::size_t j = 0; j < inputs; ++j) {
    const at::Tensor& other = draws.Of(j);
    if (j == i || !other.defined() || other.numel() == 0) continue;
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

bool MeansMore(const Draws& all, std::size_t inputs, std::size_t i, Indices::Use use, const at::Generator& generator) {
  const at::Tensor &draws = all.Of(i), shuffled = Shuffled(draws, generator);
  if (Constant(draws, shuffled) || Ordered(draws, shuffled)) return true;
  const std::vector<at::Tensor> beside = Beside(all, inputs, i);
  const std::vector<at::Tensor> paddings = {draws.min(), draws.max(), draws.reshape({-1})[draws.numel() - 1]};
  const std::vector<double> own = Exceptions(draws, paddings, beside), chance = Exceptions(shuffled, paddings, beside);
  for (std::size_t one = 0; one < own.size(); ++one) {
    if (own[one] == 0 && chance[one] >= kEnough) return true;
  }
  if (use == Indices::Use::kLabels) return false;
  if (Distinct(draws)) return true;
  for (std::int64_t dim = 1; dim < draws.dim(); ++dim) {
    const std::int64_t size = draws.dim() > 2 && draws.size(dim) <= kShort ? draws.size(dim) : 0;
    if (size > 2 && RepeatsTogether(draws.unbind(dim)) == 0 && RepeatsTogether(shuffled.unbind(dim)) >= kEnough)
      return true;
    for (std::int64_t a = 0; a < size; ++a) {
      for (std::int64_t b = 0; b < a; ++b) {
        if (PairsMeanMore(draws.select(dim, a), draws.select(dim, b), shuffled.select(dim, b))) return true;
      }
    }
  }
  std::vector<at::Tensor> together = {draws}, by_chance = {shuffled};
  for (const at::Tensor& other : beside) {
    if (other.sizes() != draws.sizes()) continue;
    together.push_back(other);
    by_chance.push_back(Shuffled(other, generator));
    if (PairsMeanMore(draws, other, by_chance.back())) return true;
  }
  return together.size() > 2 && RepeatsTogether(together) == 0 && RepeatsTogether(by_chance) >= kEnough;
}

// One of the four for each element.
at::Tensor OfFour(const at::Tensor& value, Random* random, const at::Generator& generator) {
  const auto sizes = value.sizes();
  const std::int64_t along = std::max_element(sizes.begin(), sizes.end()) - sizes.begin();
  const auto any = [&] {
    return value.narrow(along, static_cast<std::int64_t>(random->Below(static_cast<std::uint64_t>(value.size(along)))),
                        1);
  };
  const at::Tensor which = Uniform(value, generator).mul_(kFew).floor_();
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

at::Tensor OfFew(const at::Tensor& value, const Indices& indices, Random* random, const at::Generator& generator) {
  at::Tensor made = OfFour(value, random, generator);
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
  if (value.dim() > 1) {
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

Transformed MakeFewIntegers(const std::vector<Indices>& indices, const std::function<std::vector<Leaf>()>& draw,
                            Random* random, std::vector<Leaf>* leaves, double* crowded) {
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
    if (MeansMore(*draws, given.size(), i, indices[i].use, generator)) continue;
    const at::Tensor made = OfFew(value, indices[i], random, generator);
    if (made.equal(value)) continue;
    (*leaves)[i].tensor = WithStrides(made, value.strides());
    changed = true;
    if (indices[i].adds) *crowded = std::max(*crowded, static_cast<double>(value.numel()));
  }
  if (!changed) return {.how = "", .skipped = kTried};
  return {.how = "indices and labels of few of their own values, and of those that the program names", .skipped = ""};
}

}  // namespace grove::judge
