#include "worker/judge/values.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace grove::judge {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPool = 4;                                // draws kept to vary
constexpr std::int64_t kFactors = std::int64_t{1} << 20;        // that are kept: fits in a last-level cache
constexpr std::int64_t kFactorOffsets = std::int64_t{1} << 16;  // ways in which they are laid over a tensor
constexpr double kCheapDraws = 0.004;                           // seconds of drawing before a run that nobody minds

double Since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

bool Floating(const Leaf& leaf) {
  return !leaf.scalar && (leaf.tensor.is_floating_point() || leaf.tensor.is_complex()) && leaf.tensor.numel() > 0;
}

}  // namespace

Values::Values(LoadedProblem& problem, DeviceOps& ops, Random& random, const std::vector<Leaf>& leaves,
               std::size_t count)
    : problem_(problem), ops_(ops), random_(random), stride_(Stride(LayoutOf(leaves))) {
  const Layout layout = LayoutOf(leaves);
  block_ = ops.Allocate(count * stride_);
  FillGuards(&ops, block_.get());
  for (std::size_t set = 0; set < count; ++set) {
    std::vector<Leaf> own = leaves;
    std::size_t next = 0;
    for (Leaf& leaf : own) {
      floating_ = floating_ || Floating(leaf);
      if (leaf.scalar) continue;
      char* at = block_->data() + set * stride_ + layout.places[next++].offset;
      leaf.tensor = at::from_blob(at, leaf.tensor.sizes(), leaf.tensor.options());
    }
    leaves_.push_back(std::move(own));
  }
}

void Values::Refill(const std::vector<std::size_t>& sets) {
  if (begin_ == Clock::time_point{}) begin_ = Clock::now();
  const bool cheap = problem_.draw_seconds * static_cast<double>(sets.size()) <= kCheapDraws;
  // Where memory is short nothing can be kept.
  const bool keep = ops_.free_bytes() / 16 > problem_.bytes;
  for (std::size_t set : sets) {
    if (cheap || !keep || !floating_) {
      Store(set, Draw());
      continue;
    }
    const double budget = std::max(Since(begin_) / 3, 0.05) - draw_spent_;
    if (pool_.empty() || (budget > problem_.draw_seconds && random_.Below(2) == 0)) {
      const auto begin = Clock::now();
      std::vector<Leaf> drawn = Draw();
      draw_spent_ += Since(begin);
      Store(set, drawn);
      if (pool_.size() < kPool) {
        pool_.push_back(std::move(drawn));
      } else {
        pool_[random_.Below(kPool)] = std::move(drawn);
      }
    } else {
      StoreVaried(set, pool_[random_.Below(pool_.size())]);
    }
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
    if (!Floating(own[i])) {
      own[i].tensor.copy_(drawn[i].tensor);
      continue;
    }
    at::Tensor to = own[i].tensor.view({-1}), from = drawn[i].tensor.reshape({-1});
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
  factors_.push_back((1.0 - uniform / 32).to(type));
  return Factors(type, count);
}

}  // namespace grove::judge
