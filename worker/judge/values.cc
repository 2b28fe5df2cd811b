#include "worker/judge/values.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "worker/judge/distributions.h"
#include "worker/judge/tensor_type.h"

namespace grove::judge {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPool = 4;                                // draws that come again, where they must
constexpr std::int64_t kFactors = std::int64_t{1} << 20;        // that are kept: fits in a last-level cache
constexpr std::int64_t kFactorOffsets = std::int64_t{1} << 16;  // ways in which they are laid over a tensor
constexpr double kLeastFactor = 0.5;
constexpr double kCheapDraws = 0.004;  // seconds of drawing before a run that nobody minds

double Since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

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
  if (!same_draws_.has_value()) same_draws_ = SameDraws(Draw(), Draw());
  const bool cheap = problem_.draw_seconds * static_cast<double>(sets.size()) <= kCheapDraws;
  const bool room = ops_.free_bytes() / 16 > problem_.bytes;  // for draws that are kept
  if (*same_draws_ || (room && !cheap && drawing_ > most_drawing_)) {
    repeated_ = !*same_draws_;
    if (pool_.empty()) FillPool();
    for (std::size_t set : sets) StoreVaried(set, pool_[random_.Below(pool_.size())]);
    if (!room) pool_.clear();
    return;
  }
  const auto begin = Clock::now();
  // Seeded anew each time: what ran in between may have seeded the generators, too.
  for (std::size_t i = 0; i < sets.size(); ++i) {
    Store(sets[i], i == 0 ? Draw() : problem_.reference->DrawNext());
  }
  if (cheap) return;
  ops_.Synchronize();
  drawing_ += Since(begin);
}

// Whether get_inputs() gives the same whatever the seed (it seeds itself): then draws are no new values, and what was
// seen in the check would be the answer in every run.
bool Values::SameDraws(const std::vector<Leaf>& one, const std::vector<Leaf>& two) {
  bool any = false;
  for (std::size_t i = 0; i < one.size() && i < two.size(); ++i) {
    if (!Floating(one[i]) || one[i].tensor.sizes() != two[i].tensor.sizes()) continue;
    any = true;
    if (!one[i].tensor.equal(two[i].tensor)) return false;
  }
  return any;
}

// With what may be varied of its draws, from two of them.
void Values::FillPool() {
  const std::size_t size = *same_draws_ ? 1 : kPool;
  while (pool_.size() < size) pool_.push_back(Draw());
  const std::vector<Leaf>&one = pool_.front(), &two = pool_.back();
  manners_.assign(leaves_[0].size(), {});
  for (std::size_t i = 0; i < manners_.size(); ++i) {
    const Leaf& a = one.at(i);
    const Leaf& b = two.at(i);
    if (a.scalar || a.tensor.numel() == 0) continue;
    for (std::size_t j = 0; j < i && manners_[i].same_as == SIZE_MAX; ++j) {
      auto equal = [&](const std::vector<Leaf>& draw) {
        return !draw[j].scalar && draw[j].tensor.scalar_type() == draw[i].tensor.scalar_type() &&
               draw[j].tensor.sizes() == draw[i].tensor.sizes() && draw[j].tensor.equal(draw[i].tensor);
      };
      if (equal(one) && equal(two)) manners_[i].same_as = j;
    }
    if (manners_[i].same_as != SIZE_MAX) continue;
    manners_[i].varied = Floating(a) && !KeepsMeaning(a.tensor) && !KeepsMeaning(b.tensor);
    manners_[i].symmetric = manners_[i].varied && IsSymmetric(a.tensor) && IsSymmetric(b.tensor);
  }
}

std::vector<Leaf> Values::Draw() { return problem_.reference->Draw(SecretSeed()); }

void Values::Store(std::size_t set, const std::vector<Leaf>& drawn) {
  std::vector<Leaf>& own = leaves_[set];
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (i >= drawn.size() || own[i].scalar != drawn[i].scalar ||
        (!own[i].scalar && own[i].tensor.sizes() != drawn[i].tensor.sizes())) {
      throw ProblemError(
          "get_inputs() gives tensors of other sizes on each call, so a candidate cannot be given memory for them; "
          "make their shapes the same each time");
    }
    if (own[i].scalar) {
      own[i] = drawn[i];
    } else {
      own[i].tensor.copy_(drawn[i].tensor);
    }
  }
}

void Values::StoreVaried(std::size_t set, const std::vector<Leaf>& drawn) {
  std::vector<Leaf>& own = leaves_[set];
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (own[i].scalar) {
      own[i] = drawn[i];
      continue;
    }
    const Manner& manner = manners_[i];
    if (!manner.varied) {
      own[i].tensor.copy_(manner.same_as == SIZE_MAX ? drawn[i].tensor : own[manner.same_as].tensor);
      continue;
    }
    if (manner.symmetric) {
      // D A D: symmetric, and definite where A is.
      const std::int64_t n = own[i].tensor.size(-1);
      const at::ScalarType type =
          own[i].tensor.is_complex() ? at::toRealValueType(own[i].tensor.scalar_type()) : own[i].tensor.scalar_type();
      const at::Tensor factors = Factors(type, n);
      at::mul_out(own[i].tensor, drawn[i].tensor, factors.unsqueeze(-1) * factors.unsqueeze(0));
      continue;
    }
    if (drawn[i].tensor.sizes() != own[i].tensor.sizes() ||
        drawn[i].tensor.scalar_type() != own[i].tensor.scalar_type() ||
        drawn[i].tensor.device() != own[i].tensor.device()) {
      throw ProblemError(
          "get_inputs() gives tensors of other sizes or types on each call, so a candidate cannot be given memory for "
          "them; make them the same each time");
    }
    const at::Tensor to = InMemoryOrder(own[i].tensor);
    const at::Tensor from = InMemoryOrder(WithStrides(drawn[i].tensor, own[i].tensor.strides()));
    const at::ScalarType type = to.is_complex() ? at::toRealValueType(to.scalar_type()) : to.scalar_type();
    for (std::int64_t at = 0; at < to.numel(); at += kFactors) {
      const std::int64_t part = std::min(kFactors, to.numel() - at);
      at::Tensor piece = to.narrow(0, at, part);
      at::mul_out(piece, from.narrow(0, at, part), Factors(type, part));
    }
  }
}

// `count` of the kept factors, from an unpredictable one on.
at::Tensor Values::Factors(at::ScalarType type, std::int64_t count) {
  for (const at::Tensor& known : factors_) {
    if (known.scalar_type() == type) {
      return known.narrow(0, static_cast<std::int64_t>(random_.Below(kFactorOffsets)), count);
    }
  }
  at::Device device = at::kCPU;
  for (const Leaf& leaf : leaves_[0]) {
    if (!leaf.scalar) device = leaf.tensor.device();
  }
  const at::Tensor uniform = at::rand({kFactors + kFactorOffsets}, at::device(device).dtype(at::kFloat));
  factors_.push_back((1.0 - uniform * (1 - kLeastFactor)).to(type));
  return Factors(type, count);
}

}  // namespace grove::judge
