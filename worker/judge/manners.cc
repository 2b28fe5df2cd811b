#include "worker/judge/manners.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "worker/judge/distributions.h"
#include "worker/judge/problem_error.h"
#include "worker/judge/random.h"
#include "worker/judge/tensor_type.h"

namespace grove::judge {
namespace {

constexpr int kSeeds = 4;  // by which it is seen what of an input is drawn
// Of its elements that are neither zero nor the most common value (a clamp's bound, a flag), those that are the same by
// all seeds. Of two values that are drawn as often as one another an eighth are.
constexpr double kMostSame = 0.25;

// The value that most of the elements have, by some of them; of complex numbers 0.
at::Tensor MostCommon(const at::Tensor& value) {
  constexpr std::int64_t kSome = 4096;
  if (value.is_complex()) return at::zeros({}, value.options());
  const at::Tensor flat = InMemoryOrder(value);
  const at::Tensor some = flat.narrow(0, 0, std::min(flat.numel(), kSome)).to(at::kCPU, at::kDouble);
  const auto [values, places, counts] = at::_unique2(some, /*sorted=*/true, /*return_inverse=*/false, true);
  return values[counts.argmax()].to(value.options());
}

// Whether the elements of two tensors are the same ones; NaN is like NaN.
at::Tensor Alike(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor same = a.eq(b);
  return Fractions(a) ? same.logical_or(at::isnan(a).logical_and(at::isnan(b))) : same;
}

// NaN and infinities stay what they are times a factor.
bool MayVary(const at::Tensor& value) { return Fractions(value) && !KeepsMeaningWhereFinite(value); }

bool LookedAt(const Leaf& leaf) { return !leaf.scalar && leaf.tensor.numel() > 0; }

}  // namespace

void MustBeLike(const std::vector<Leaf>& leaves, const std::vector<Leaf>& drawn) {
  bool like = drawn.size() == leaves.size();
  for (std::size_t i = 0; like && i < leaves.size(); ++i) {
    like = leaves[i].scalar == drawn[i].scalar &&
           (leaves[i].scalar || (leaves[i].tensor.sizes() == drawn[i].tensor.sizes() &&
                                 leaves[i].tensor.scalar_type() == drawn[i].tensor.scalar_type()));
  }
  if (like) return;
  throw ProblemError(
      "get_inputs() gives tensors of other sizes or types on each call, so a candidate cannot be given memory for "
      "them; make them the same each time");
}

Manners LearnManners(Reference& reference, const std::vector<Leaf>& leaves) {
  const auto draw = [&](std::uint64_t seed) {
    std::vector<Leaf> drawn = reference.Draw(seed);
    MustBeLike(leaves, drawn);
    return drawn;
  };
  Manners manners;
  manners.inputs.resize(leaves.size());
  const std::uint64_t seed = SecretSeed();
  const std::vector<Leaf> one = draw(seed);
  std::vector<at::Tensor> same(one.size());  // by all seeds
  {
    const std::vector<Leaf> two = draw(SecretSeed());
    for (std::size_t i = 0; i < one.size(); ++i) {
      if (!LookedAt(one[i])) continue;
      Manner& manner = manners.inputs[i];
      const auto earlier = EarlierEqual(one, i);
      if (earlier && earlier == EarlierEqual(two, i)) manner.same_as = *earlier;
      const at::Tensor &a = one[i].tensor, &b = two[i].tensor;
      same[i] = Alike(a, b);
      manner.varied = MayVary(a) && MayVary(b);
      const Symmetry symmetry = manner.varied ? SymmetryOf(a) : Symmetry::kNone;
      manner.symmetric = symmetry != Symmetry::kNone && SymmetryOf(b) == symmetry;
    }
  }
  for (int other = 2; other < kSeeds; ++other) {
    const std::vector<Leaf> drawn = draw(SecretSeed());
    for (std::size_t i = 0; i < one.size(); ++i) {
      if (LookedAt(one[i])) same[i] = same[i].logical_and(Alike(one[i].tensor, drawn[i].tensor));
    }
  }
  const std::vector<Leaf> again = draw(seed);
  bool any = false;
  for (std::size_t i = 0; i < one.size(); ++i) {
    if (!LookedAt(one[i])) continue;
    const at::Tensor& value = one[i].tensor;
    const at::Tensor some = value.ne(0).logical_and(value.ne(MostCommon(value)));
    const double count = some.sum().item<double>();
    const bool fixed =
        count > 0 ? same[i].logical_and(some).sum().item<double>() > kMostSame * count : same[i].all().item<bool>();
    const bool repeats = Alike(value, again[i].tensor).all().item<bool>();
    Manner& manner = manners.inputs[i];
    manner.drawn = repeats && !fixed;
    any = any || manner.drawn;
    manners.known = manners.known || !repeats || (manner.varied && !manner.drawn);
  }
  manners.known = manners.known || !any;
  return manners;
}

}  // namespace grove::judge
