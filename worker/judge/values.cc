#include "worker/judge/values.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "worker/judge/clock.h"
#include "worker/judge/distributions.h"
#include "worker/judge/problem_error.h"
#include "worker/judge/random.h"
#include "worker/judge/tensor_type.h"

namespace grove::judge {
namespace {

constexpr std::size_t kPool = 4;  // draws that come again, where they must
constexpr double kLeastFactor = 0.5;
constexpr std::int64_t kBlock = std::int64_t{1} << 22;  // factors that are made at a time
// Seconds of drawing before a run: what nobody minds, and the most.
constexpr double kCheapDraws = 0.004, kLongDraws = 0.3;

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
  Learn();
}

// Before there is a candidate: it could see to it that there is no memory for that. Found out once for a problem.
void Values::Learn() {
  if (!problem_.manners && ops_.free_bytes() / 16 > problem_.bytes) {
    try {
      problem_.manners = LearnManners(*problem_.reference, leaves_[0]);
    } catch (const ProblemError&) {
      throw;
    } catch (const std::exception&) {  // no room now
    }
  }
  if (problem_.manners) {
    manners_ = *problem_.manners;
  } else {
    manners_.inputs.resize(leaves_[0].size());
    manners_.known = true;  // for all that is known
  }
}

void Values::Refill(const std::vector<std::size_t>& sets) {
  const double all = problem_.draw_seconds * static_cast<double>(sets.size());
  const auto begin = Clock::now();
  // Where it is not known what may be varied, nothing comes again; nor where there is no room to keep it.
  const bool again = problem_.manners && (!pool_.empty() || ops_.free_bytes() / 16 > problem_.bytes);
  if (again && all > kCheapDraws && drawing_ > most_drawing_) {
    repeated_ = true;
    while (pool_.size() < kPool) pool_.push_back(Draw());
    for (std::size_t set : sets) Store(set, pool_[random_.Below(kPool)], /*vary=*/true);
  } else {
    const std::size_t fresh = Fresh(sets.size());
    for (std::size_t i = 0; i < sets.size(); ++i) {
      if (i < fresh) {
        Store(sets[i], Draw(), /*vary=*/false);
      } else {
        repeated_ = true;
        Store(sets[i], leaves_[sets[i % fresh]], /*vary=*/true);
      }
    }
  }
  if (all <= kCheapDraws && Since(begin) <= kCheapDraws) return;  // factors take their time, too
  ops_.Synchronize();
  drawing_ += Since(begin);
}

std::size_t Values::Fresh(std::size_t sets) const {
  if (!problem_.manners || problem_.draw_seconds * static_cast<double>(sets) <= kLongDraws) return sets;
  return std::max(static_cast<std::size_t>(kLongDraws / problem_.draw_seconds), std::size_t{1});
}

double Values::RefillSeconds(std::size_t sets) const {
  return problem_.draw_seconds * static_cast<double>(Fresh(sets));
}

std::vector<Leaf> Values::Draw() { return problem_.reference->Draw(SecretSeed()); }

void Values::Store(std::size_t set, const std::vector<Leaf>& drawn, bool vary) {
  std::vector<Leaf>& own = leaves_[set];
  MustBeLike(own, drawn);
  std::vector<bool> other(own.size());  // than what was drawn
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (own[i].scalar) {
      own[i] = drawn[i];
      continue;
    }
    const Manner& manner = manners_.inputs[i];
    const at::Tensor& to = own[i].tensor;
    to.copy_(drawn[i].tensor);
    if (manner.same_as != SIZE_MAX) {
      if (other[manner.same_as]) to.copy_(own[manner.same_as].tensor);
    } else if (manner.varied && (vary || !manner.drawn)) {
      other[i] = true;
      Multiply(to, manner.symmetric);
    }
  }
}

// By secret factors. Each time from a generator of its own: what somebody learns of its numbers is of no use later.
void Values::Multiply(const at::Tensor& to, bool symmetric) {
  const at::Generator generator = MakeGenerator(to.device(), SecretSeed());
  const at::ScalarType real = to.is_complex() ? at::toRealValueType(to.scalar_type()) : to.scalar_type();
  const auto factors = [&](std::int64_t count) {
    return at::empty({count}, at::device(to.device()).dtype(at::kFloat)).uniform_(kLeastFactor, 1, generator).to(real);
  };
  if (symmetric) {  // D A D: symmetric, and definite where A is
    const at::Tensor both = factors(to.size(-1));
    to.mul_(both.unsqueeze(-1) * both.unsqueeze(0));
    return;
  }
  const at::Tensor flat = InMemoryOrder(to);
  for (std::int64_t begin = 0; begin < flat.numel(); begin += kBlock) {
    const std::int64_t count = std::min(kBlock, flat.numel() - begin);
    flat.narrow(0, begin, count).mul_(factors(count));
  }
}

}  // namespace grove::judge
