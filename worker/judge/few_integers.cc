#include "worker/judge/few_integers.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "worker/judge/tensor_type.h"

namespace grove::judge {
namespace {

constexpr std::int64_t kShortest = 8;  // along the dimension that values are taken from
constexpr std::int64_t kShort = 8;     // a dimension whose places may each mean something: from, to
constexpr double kFew = 4;
constexpr std::size_t kMostNamed = 4;
constexpr std::int64_t kMostElements = std::int64_t{1} << 24;  // shuffled and sorted to look at them

bool True(const at::Tensor& condition) { return condition.item<bool>(); }

std::int64_t LongestOf(const at::Tensor& value) {
  const auto sizes = value.sizes();
  return std::max_element(sizes.begin(), sizes.end()) - sizes.begin();
}

at::Tensor Uniform(const at::Tensor& like, const at::Generator& generator) {
  return at::rand(like.sizes(), generator, at::TensorOptions().device(like.device()).dtype(at::kFloat));
}

// Each row by itself.
at::Tensor Shuffled(const at::Tensor& value, std::int64_t along, const at::Generator& generator) {
  return value.gather(along, Uniform(value, generator).argsort(along));
}

bool HasRepeats(const at::Tensor& value, std::int64_t dim) {
  const at::Tensor sorted = std::get<0>(value.sort(dim));
  const std::int64_t rest = sorted.size(dim) - 1;
  return True(sorted.narrow(dim, 1, rest).eq(sorted.narrow(dim, 0, rest)).any());
}

// 1 where it is true everywhere that `one` is no larger, 2 that it is no smaller.
int Compared(const at::Tensor& one, const at::Tensor& other) {
  return (True(one.le(other).all()) ? 1 : 0) + (True(one.ge(other).all()) ? 2 : 0);
}

// What holds for all elements of an input, in an order that is that of every such input of its shape.
std::vector<int> Relations(const at::Tensor& value, std::int64_t along, const std::vector<at::Tensor>& beside) {
  std::vector<int> hold;
  for (std::int64_t dim = 0; dim < value.dim(); ++dim) {
    const std::int64_t size = value.size(dim);
    std::vector<std::int64_t> shape(static_cast<std::size_t>(value.dim()), 1);
    shape[static_cast<std::size_t>(dim)] = size;
    hold.push_back(Compared(value, at::arange(size, value.options()).view(shape)));
    if (dim == along) continue;
    hold.push_back(size > 1 && !HasRepeats(value, dim) ? 1 : 0);
    const at::Tensor sums = value.sum(dim);
    hold.push_back(True(sums.eq(sums.reshape({-1})[0]).all()) ? 1 : 0);
    if (size > kShort) continue;
    for (std::int64_t i = 0; i < size; ++i) {
      for (std::int64_t j = 0; j < i; ++j) hold.push_back(Compared(value.select(dim, i), value.select(dim, j)));
    }
  }
  for (const at::Tensor& other : beside) hold.push_back(Compared(value, other));
  return hold;
}

bool Integers(const Leaf& leaf) {
  const at::ScalarType type = leaf.tensor.scalar_type();
  return !leaf.scalar && (type == at::kInt || type == at::kLong);
}

// Further draws of the problem, made when they are asked for.
class Draws {
 public:
  explicit Draws(const std::function<std::vector<Leaf>()>& draw) : draw_(draw) {}

  const at::Tensor& Again(std::size_t i) {
    if (further_.empty()) further_.push_back(draw_());  // (all of it: what is large is asked once)
    return further_[0].at(i).tensor;
  }

  // Whether in any of them a value comes twice along a dimension: where numbers are drawn among many, that is seldom.
  bool Repeats(std::size_t i, std::int64_t along) {
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    for (std::size_t one = 0; one < kMostDraws; ++one) {
      if (one == further_.size()) {
        if (std::chrono::duration<double>(Clock::now() - begin).count() > kMostSeconds) return false;
        further_.push_back(draw_());
        for (Leaf& leaf : further_.back()) {
          if (!Integers(leaf) || leaf.tensor.numel() > kLargest) leaf.tensor = at::Tensor();
        }
      }
      const at::Tensor& value = further_[one].at(i).tensor;
      if (value.defined() && HasRepeats(value, along)) return true;
    }
    return false;
  }

 private:
  static constexpr std::size_t kMostDraws = 64;
  static constexpr double kMostSeconds = 0.2;
  static constexpr std::int64_t kLargest = 1 << 16;  // elements; in more of them a value comes twice, or never

  const std::function<std::vector<Leaf>()>& draw_;
  std::vector<std::vector<Leaf>> further_;
};

// Whether `one` has the shape of `other` without this dimension.
bool Without(const at::Tensor& one, std::int64_t dim, const at::Tensor& other) {
  std::vector<std::int64_t> sizes = other.sizes().vec();
  sizes.erase(sizes.begin() + dim);
  return one.sizes() == at::IntArrayRef(sizes);
}

// Inputs of whole numbers that may bound this one's elements, as they stand beside them: of its shape, one for each of
// its rows (a place and a length), and the ends of what stands in theirs (a length and places).
std::vector<at::Tensor> Beside(const std::vector<Leaf>& leaves, std::size_t i) {
  const at::Tensor& value = leaves[i].tensor;
  std::vector<at::Tensor> beside;
  for (std::size_t j = 0; j < leaves.size(); ++j) {
    if (j == i || !Integers(leaves[j]) || leaves[j].tensor.numel() == 0) continue;
    const at::Tensor& other = leaves[j].tensor;
    if (other.sizes() == value.sizes()) beside.push_back(other);
    const std::int64_t dims = std::max(value.dim(), other.dim());
    for (const std::int64_t dim : {std::int64_t{0}, dims - 1}) {
      if (other.dim() + 1 == value.dim() && Without(other, dim, value)) beside.push_back(other.unsqueeze(dim));
      if (value.dim() + 1 == other.dim() && Without(value, dim, other)) {
        beside.push_back(other.amin(dim));
        beside.push_back(other.amax(dim));
      }
    }
  }
  return beside;
}

bool MeansMore(const std::vector<Leaf>& leaves, std::size_t i, Draws* draws, const at::Generator& generator) {
  const at::Tensor& value = leaves[i].tensor;
  const std::int64_t along = LongestOf(value);
  const at::Tensor again = draws->Again(i);
  if (value.sizes() != again.sizes() || True(value.sum().eq(again.sum()))) return true;
  const at::Tensor sums = value.sum(along);
  if (sums.numel() > 1 && True(sums.eq(sums.reshape({-1})[0]).all())) return true;
  for (std::int64_t dim = 0; dim < value.dim(); ++dim) {
    if (value.size(dim) > 2 && (IsSorted(value, dim) || IsSorted(value.flip(dim), dim))) return true;
  }
  const std::vector<at::Tensor> beside = Beside(leaves, i);
  const std::vector<int> own = Relations(value, along, beside);
  const std::vector<int> by_chance = Relations(Shuffled(value, along, generator), along, beside);
  for (std::size_t one = 0; one < own.size(); ++one) {
    if ((own[one] & ~by_chance[one]) != 0) return true;
  }
  return !HasRepeats(value, along) && !draws->Repeats(i, along);
}

// One of the four for each element.
at::Tensor OfFew(const at::Tensor& value, Random* random, const at::Generator& generator) {
  const std::int64_t along = LongestOf(value);
  const auto any = [&] {
    return value.narrow(along, static_cast<std::int64_t>(random->Below(static_cast<std::uint64_t>(value.size(along)))),
                        1);
  };
  const at::Tensor which = Uniform(value, generator).mul_(kFew).floor_();
  at::Tensor made = at::where(which.eq(0), value.amin(along, /*keepdim=*/true), value.amax(along, /*keepdim=*/true));
  for (const double place : {2.0, 3.0}) made = at::where(which.eq(place), any(), made);
  return made;
}

// Nothing where it stays as drawn.
std::optional<at::Tensor> FewOf(const std::vector<Leaf>& leaves, std::size_t i, Draws* draws,
                                const std::vector<Labels::Named>& named, Random* random) {
  const at::Tensor& value = leaves[i].tensor;
  if (value.dim() == 0 || value.numel() == 0 || value.numel() > kMostElements) return std::nullopt;
  if (value.size(LongestOf(value)) < kShortest) return std::nullopt;
  const double least = value.min().item<double>(), most = value.max().item<double>();
  if (least == most) return std::nullopt;
  const at::Generator generator = MakeGenerator(value.device(), random->Next() >> 1);
  if (MeansMore(leaves, i, draws, generator)) return std::nullopt;
  at::Tensor made = OfFew(value, random, generator);
  std::vector<std::int64_t> put;
  for (const Labels::Named& one : named) {
    // (Zero is an index that exists, and so is what lies between it and one that does.)
    const bool exists = one.alone || (one.value >= std::min(least, 0.0) && one.value <= most);
    if (exists && put.size() < kMostNamed) put.push_back(static_cast<std::int64_t>(one.value));
  }
  // As often as all others together.
  const at::Tensor which = Uniform(value, generator).mul_(static_cast<double>(put.size()) + 1).floor_();
  for (std::size_t one = 0; one < put.size(); ++one)
    made = made.masked_fill(which.eq(static_cast<double>(one)), put[one]);
  return made;
}

}  // namespace

Transformed MakeFewIntegers(const Labels& labels, const std::function<std::vector<Leaf>()>& draw,
                            const std::vector<double>& others, Random* random, std::vector<Leaf>* leaves) {
  const std::vector<Leaf> given = *leaves;
  Draws draws(draw);
  bool changed = false;
  for (std::size_t i = 0; i < given.size() && labels.may_repeat; ++i) {
    if (!Integers(given[i]) || (i < others.size() && others[i] > 0)) continue;
    std::optional<at::Tensor> made;
    if (const auto earlier = EarlierEqual(given, i)) {
      made = (*leaves)[*earlier].tensor;
    } else {
      made = FewOf(given, i, &draws, i < labels.named.size() ? labels.named[i] : std::vector<Labels::Named>(), random);
    }
    if (!made || made->equal(given[i].tensor)) continue;
    (*leaves)[i].tensor = WithStrides(*made, given[i].tensor.strides());
    changed = true;
  }
  if (changed)
    return {.how = "indices and labels of few of their own values, and of those that the program names", .skipped = ""};
  return {.how = "",
          .skipped =
              "the integer inputs' values are the same in every draw, sorted, each there once, or stand in a "
              "relation to others that few of them would not have"};
}

}  // namespace grove::judge
