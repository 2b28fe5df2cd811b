#include "worker/judge/values.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "worker/judge/distributions.h"
#include "worker/judge/random.h"
#include "worker/judge/tensor_type.h"

namespace grove::judge {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPool = 4;  // draws that come again, where they must
constexpr double kLeastFactor = 0.5;
constexpr double kCheapDraws = 0.004;  // seconds of drawing before a run that nobody minds
constexpr int kSeeds = 4;              // by which it is seen what of an input is drawn
// Of its elements that are not zero, those that are the same by all seeds. Of two values that are drawn as often as one
// another an eighth are.
constexpr double kMostSame = 0.25;

double Since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// (NaN and infinities stay what they are times a factor.)
bool MayVary(const at::Tensor& value) {
  return !KeepsMeaning(at::where(at::isfinite(value), value, at::zeros_like(value)));
}

bool Floating(const Leaf& leaf) { return !leaf.scalar && Fractions(leaf.tensor) && leaf.tensor.numel() > 0; }

}  // namespace

Values::Values(LoadedProblem& problem, DeviceOps& ops, Random& random, const std::vector<Leaf>& leaves,
               std::size_t count, double most_drawing)
    : problem_(problem), ops_(ops), random_(random), stride_(Stride(LayoutOf(leaves))), most_drawing_(most_drawing) {
  const Layout layout = LayoutOf(leaves);
  block_ = ops.Allocate(count * stride_);
  FillGuards(&ops, block_.get());
  for (std::size_t set = 0; set < count; ++set) {
    std::vector<Leaf> own = leaves;
    std::size_t next = 0;
    for (Leaf& leaf : own) {
      if (leaf.scalar) continue;
      char* at = block_->data() + set * stride_ + layout.places[next++].offset;
      leaf.tensor = at::from_blob(at, leaf.tensor.sizes(), leaf.tensor.strides(), leaf.tensor.options());
    }
    leaves_.push_back(std::move(own));
  }
}

void Values::Refill(const std::vector<std::size_t>& sets) {
  if (!problem_.known_draws.has_value()) LearnManners();
  const bool cheap = problem_.draw_seconds * static_cast<double>(sets.size()) <= kCheapDraws;
  const bool room = ops_.free_bytes() / 16 > problem_.bytes;  // for draws that are kept
  if (room && !cheap && drawing_ > most_drawing_) {
    repeated_ = true;
    while (pool_.size() < kPool) pool_.push_back(Draw());
    for (std::size_t set : sets) Store(set, pool_[random_.Below(kPool)], /*vary=*/true);
    return;
  }
  const auto begin = Clock::now();
  // Seeded anew each time: what ran in between may have seeded the generators, too.
  for (std::size_t i = 0; i < sets.size(); ++i) {
    Store(sets[i], i == 0 ? Draw() : problem_.reference->DrawNext(), /*vary=*/false);
  }
  if (cheap) return;
  ops_.Synchronize();
  drawing_ += Since(begin);
}

// What may be varied of each input, and what has to be: get_inputs() may seed itself, have a generator of its own, or
// give the same tensor each time. Found out once for a problem.
void Values::LearnManners() {
  problem_.manners.assign(leaves_[0].size(), {});
  // Where there is no room for some draws at once, nothing is known of them.
  problem_.known_draws = false;
  if (ops_.free_bytes() / 4 < problem_.bytes) {
    for (Manner& manner : problem_.manners) manner.drawn = true;
    return;
  }
  const std::uint64_t seed = SecretSeed();
  const std::vector<Leaf> one = problem_.reference->Draw(seed), two = Draw();
  Store(0, one, false);  // says what is wrong with their shapes
  Store(0, two, false);
  // Whether the elements of two tensors are the same ones; NaN is like NaN.
  const auto alike = [](const at::Tensor& a, const at::Tensor& b) {
    const at::Tensor same = a.eq(b);
    return Fractions(a) ? same.logical_or(at::isnan(a).logical_and(at::isnan(b))) : same;
  };
  const auto looked_at = [&](std::size_t i) {
    return !one[i].scalar && one[i].tensor.numel() > 0 && problem_.manners[i].same_as == SIZE_MAX;
  };
  std::vector<at::Tensor> same(one.size());  // by all seeds
  for (std::size_t i = 0; i < one.size(); ++i) {
    Manner& manner = problem_.manners[i];
    for (std::size_t j = 0; j < i && manner.same_as == SIZE_MAX && looked_at(i); ++j) {
      const auto equal = [&](const std::vector<Leaf>& draw) {
        return !draw[j].scalar && draw[j].tensor.scalar_type() == draw[i].tensor.scalar_type() &&
               draw[j].tensor.sizes() == draw[i].tensor.sizes() && draw[j].tensor.equal(draw[i].tensor);
      };
      if (equal(one) && equal(two)) manner.same_as = j;
    }
    if (!looked_at(i)) continue;
    const at::Tensor &a = one[i].tensor, &b = two[i].tensor;
    same[i] = alike(a, b);
    manner.varied = Floating(one[i]) && MayVary(a) && MayVary(b);
    manner.symmetric = manner.varied && IsSymmetric(a) && IsSymmetric(b);
  }
  for (int draw = 2; draw < kSeeds; ++draw) {
    const std::vector<Leaf> other = Draw();
    Store(0, other, false);
    for (std::size_t i = 0; i < one.size(); ++i) {
      if (looked_at(i)) same[i] = same[i].logical_and(alike(one[i].tensor, other[i].tensor));
    }
  }
  const std::vector<Leaf> again = problem_.reference->Draw(seed);
  Store(0, again, false);
  bool any = false, repeats = true;
  for (std::size_t i = 0; i < one.size(); ++i) {
    if (!looked_at(i)) continue;
    const at::Tensor some = one[i].tensor.ne(0);
    const double count = some.sum().item<double>();
    const bool fixed = same[i].logical_and(some).sum().item<double>() >= kMostSame * count;
    const bool repeated = alike(one[i].tensor, again[i].tensor).all().item<bool>();
    problem_.manners[i].drawn = repeated && !fixed;
    // (A mask or a table may well be the same each time, beside inputs that are drawn.)
    any = any || problem_.manners[i].drawn;
    repeats = repeats && repeated;
  }
  problem_.known_draws = !any || !repeats;
}

std::vector<Leaf> Values::Draw() { return problem_.reference->Draw(SecretSeed()); }

void Values::Store(std::size_t set, const std::vector<Leaf>& drawn, bool vary) {
  std::vector<Leaf>& own = leaves_[set];
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (i >= drawn.size() || own[i].scalar != drawn[i].scalar ||
        (!own[i].scalar && (own[i].tensor.sizes() != drawn[i].tensor.sizes() ||
                            own[i].tensor.scalar_type() != drawn[i].tensor.scalar_type()))) {
      throw ProblemError(
          "get_inputs() gives tensors of other sizes or types on each call, so a candidate cannot be given memory for "
          "them; make them the same each time");
    }
    if (own[i].scalar) {
      own[i] = drawn[i];
      continue;
    }
    const Manner& manner = problem_.manners[i];
    const at::Tensor &to = own[i].tensor, &from = drawn[i].tensor;
    if (manner.same_as != SIZE_MAX) {
      to.copy_(own[manner.same_as].tensor);
    } else if (!manner.varied || (manner.drawn && !vary)) {
      to.copy_(from);
    } else if (manner.symmetric) {  // D A D: symmetric, and definite where A is
      const at::Tensor factors = Factors(to.scalar_type(), to.sizes().back());
      to.copy_(from).mul_(factors.unsqueeze(-1) * factors.unsqueeze(0));
    } else {
      to.copy_(from).mul_(Factors(to.scalar_type(), to.sizes()));
    }
  }
}

at::Tensor Values::Factors(at::ScalarType type, at::IntArrayRef shape) {
  at::Device device = at::kCPU;
  for (const Leaf& leaf : leaves_[0]) {
    if (!leaf.scalar) device = leaf.tensor.device();
  }
  if (!generator_.defined()) generator_ = MakeGenerator(device, SecretSeed());
  const at::ScalarType real = at::isComplexType(type) ? at::toRealValueType(type) : type;
  const at::Tensor uniform =
      at::empty(shape, at::device(device).dtype(at::kFloat)).uniform_(kLeastFactor, 1, generator_);
  return uniform.to(real);
}

}  // namespace grove::judge
