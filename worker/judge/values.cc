#include "worker/judge/values.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

#include "worker/judge/distributions.h"
#include "worker/judge/on_the_way.h"
#include "worker/judge/tensor_type.h"
#include "worker/judge/turns.h"

namespace grove::judge {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPool = 4;                                // draws kept to vary
constexpr std::int64_t kFactors = std::int64_t{1} << 20;        // that are kept: fits in a last-level cache
constexpr std::int64_t kFactorOffsets = std::int64_t{1} << 16;  // ways in which they are laid over a tensor
constexpr double kManyTerms = 0x1p16;                           // of a reduction over which such factors average out
constexpr double kNarrow = 1.0 / 32, kWide = 1.0 / 2;           // what factors may be below 1; of many terms
constexpr double kMostAlike = 0.5;  // share of an output's elements that factors may leave as they were
// Where half of the inputs' elements have new factors, a result of two elements and more stays as it was in a quarter
// of the cases if it needs them all, and in half of them if it is one of them.
constexpr double kMostChosen = 0.375;
constexpr double kManyZeros = 1.0 / 64;  // of an input's elements
constexpr double kCheapDraws = 0.004;    // seconds of drawing before a run that nobody minds
constexpr double kLongDraws = 0.4;       // and the most, where every set must be drawn

double Since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Whether zeros, which no factor moves, are many, and in each draw in other places: who has seen a draw need not look
// for them.
bool OtherZeros(const at::Tensor& one, const at::Tensor& two) {
  const at::Tensor zeros = one.eq(0);
  return zeros.sum().item<double>() > kManyZeros * static_cast<double>(one.numel()) && !zeros.equal(two.eq(0));
}

// Elements that are looked at, or made, at a time.
constexpr std::int64_t kBlock = std::int64_t{1} << 24;

// Makes `to` what `from` is, but for a random share of the elements, which become what `other` makes of blocks of both.
// Both are dense.
template <typename Other>
void Mix(const at::Tensor& to, const at::Tensor& from, double share, const Other& other) {
  const auto flat = [](const at::Tensor& dense) { return dense.as_strided({dense.numel()}, {1}); };
  const bool alike = from.strides() == to.strides() && from.is_non_overlapping_and_dense();
  const at::Tensor all = flat(to), drawn = flat(alike ? from : at::empty_like(to).copy_(from));
  for (std::int64_t begin = 0; begin < all.numel(); begin += kBlock) {
    const std::int64_t count = std::min(kBlock, all.numel() - begin);
    const at::Tensor block = all.narrow(0, begin, count), given = drawn.narrow(0, begin, count);
    const at::Tensor chosen = at::rand({count}, all.options().dtype(at::kFloat)).lt(share);
    block.copy_(at::where(chosen, other(block, given), given));
  }
}

bool Floating(const Leaf& leaf) { return !leaf.scalar && Fractions(leaf.tensor) && leaf.tensor.numel() > 0; }

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
      if (leaf.scalar) continue;
      char* at = block_->data() + set * stride_ + layout.places[next++].offset;
      leaf.tensor = at::from_blob(at, leaf.tensor.sizes(), leaf.tensor.strides(), leaf.tensor.options());
    }
    leaves_.push_back(std::move(own));
  }
}

void Values::Refill(const std::vector<std::size_t>& sets) {
  if (begin_ == Clock::time_point{}) begin_ = Clock::now();
  // Where memory is short nothing can be kept.
  const bool keep = ops_.free_bytes() / 16 > problem_.bytes;
  bool cheap = problem_.draw_seconds * static_cast<double>(sets.size()) <= kCheapDraws;
  if (cheap && !same_draws_.has_value()) same_draws_ = SameDraws(Draw(), Draw());
  cheap = cheap && !*same_draws_;
  if (manners_.empty() && !cheap && keep) {
    pool_.push_back(Draw());
    pool_.push_back(Draw());
    Learn(pool_[0], pool_[1]);
  }
  bool queued = false;
  for (std::size_t set : sets) {
    if (cheap || !keep) {  // (without room there are no others)
      Store(set, Draw());
      continue;
    }
    const auto begin = Clock::now();
    if (fresh_ && fresh_spent_ < kMostDrawing) {
      Store(set, Draw());
      fresh_spent_ += Since(begin);
      queued = true;
      continue;
    }
    const double budget = std::max(Since(begin_) / 3, 0.05) - draw_spent_;
    if (!*same_draws_ && budget > problem_.draw_seconds && random_.Below(2) == 0) {
      std::vector<Leaf> drawn = Draw();
      draw_spent_ += Since(begin);
      Store(set, drawn);
      if (pool_.size() < kPool) {
        pool_.push_back(std::move(drawn));
      } else {
        pool_[random_.Below(kPool)] = std::move(drawn);
      }
    } else {
      repeated_ = repeated_ || fresh_;
      StoreVaried(set, pool_[random_.Below(pool_.size())]);
    }
  }
  if (!queued) return;
  const auto begin = Clock::now();
  ops_.Synchronize();
  fresh_spent_ += Since(begin);
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

void Values::Learn(const std::vector<Leaf>& one, const std::vector<Leaf>& two) {
  if (!same_draws_.has_value()) same_draws_ = SameDraws(one, two);
  manners_.resize(leaves_[0].size());
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
    // What is the same in every draw (a mask, a table) may be so in every set.
    fresh_ = fresh_ || (!manners_[i].varied && !a.tensor.equal(b.tensor));
    fresh_ = fresh_ || (manners_[i].varied && OtherZeros(a.tensor, b.tensor));
  }
  // D A D tells D on its diagonal, and what was seen of A then gives the answer.
  const bool told =
      std::any_of(manners_.begin(), manners_.end(), [](const Manner& manner) { return manner.symmetric; });
  const auto tells_where = [&] {  // found out once for all evaluations of a problem: it takes several runs
    if (problem_.tells_where) return *problem_.tells_where;
    bool elements = true, slices = true;
    const bool tells =
        SameForVaried(one) || FewMatter(one, &elements) || SlicesIdle(one, &slices) || IdleInside(one, two);
    if (tells || (elements && slices && problem_.idle_inside)) problem_.tells_where = tells;
    return tells;
  };
  // (Where draws are always the same, another one would be no newer.)
  fresh_ = fresh_ || (!*same_draws_ && (always_ || told || ManyTerms() || problem_.chooses || tells_where()));
  if (!fresh_ && !Wide() && AveragesOut(one)) {
    wide_ = true;
    factors_.clear();
    fresh_ = !*same_draws_ && AveragesOut(one);
  }
  if (fresh_) most_sets_ = static_cast<std::size_t>(std::max(kLongDraws / std::max(problem_.draw_seconds, 1e-9), 1.0));
}

// Whether the result does not follow the factors (signs, thresholds at zero): then what was seen of an earlier set is
// the answer for this one. Or is chosen among the inputs: then it says where the answer is.
bool Values::SameForVaried(const std::vector<Leaf>& drawn) {
  if (!Varies()) return false;
  StoreVaried(0, drawn);
  const std::vector<at::Tensor> before = OutputsOf(drawn);
  // Whether of an output, where it is worth saying, more than this share stayed. Zeros that stay zeros are a
  // rectifier's.
  const auto stayed = [&](const std::vector<at::Tensor>& after, double share, double least_inputs) {
    for (std::size_t i = 0; i < before.size() && i < after.size(); ++i) {
      if (before[i].numel() == 0 || before[i].sizes() != after[i].sizes()) continue;
      if (static_cast<double>(before[i].numel()) > least_inputs) continue;
      const at::Tensor some = before[i].ne(0);
      const double count = some.sum().item<double>();
      if (count > 0 && at::logical_and(some, before[i].eq(after[i])).sum().item<double>() > share * count) return true;
    }
    return false;
  };
  constexpr double kAny = std::numeric_limits<double>::infinity();
  if (stayed(OutputsOf(leaves_[0]), kMostAlike, kAny)) return true;
  // Who has seen a draw knows where its largest elements are, and need look at no others: the values follow the
  // factors, what has to be read for them does not.
  double inputs = 0;
  for (std::size_t i = 0; i < manners_.size(); ++i) {
    if (!manners_[i].varied || manners_[i].symmetric) continue;
    const at::Tensor& varied = leaves_[0][i].tensor;
    Mix(varied, drawn[i].tensor, 0.5, [](const at::Tensor& now, const at::Tensor&) { return now; });
    inputs += static_cast<double>(varied.numel());
  }
  for (std::size_t i = 0; i < manners_.size(); ++i) {
    if (manners_[i].same_as != SIZE_MAX) leaves_[0][i].tensor.copy_(leaves_[0][manners_[i].same_as].tensor);
  }
  return stayed(OutputsOf(leaves_[0]), kMostChosen, inputs / 2);
}

bool Values::Varies() const {
  return std::any_of(manners_.begin(), manners_.end(), [](const Manner& manner) { return manner.varied; });
}

std::vector<at::Tensor> Values::OutputsOf(const std::vector<Leaf>& leaves, Mode mode) {
  const auto call = problem_.reference->Prepare(leaves, mode);
  call->Run();
  return call->Outputs();
}

// Whether most elements of the inputs have no part in the results (what a rectifier takes off before a sum, terms of a
// softmax that vanish beside the largest): who has seen a draw knows which, and need not read them. So many elements
// are halved that of as many terms as each output has on average two would be, if each had a part in one.
bool Values::FewMatter(const std::vector<Leaf>& drawn, bool* whole) {
  if (!Varies()) return false;
  constexpr double kEach = 2, kLeast = 64;  // elements of an output, or runs, that say enough
  constexpr double kMostTerms = 0x1p20;
  constexpr int kMostRuns = 16;
  constexpr double kSeconds = 1;  // for all of it, but for one run
  const auto begin = Clock::now();
  bool first = true;
  const std::vector<at::Tensor> before = OutputsOf(drawn);
  double inputs = 0;
  for (std::size_t i = 0; i < manners_.size(); ++i) {
    // (Zeros that are halved stay what they are.)
    if (manners_[i].varied) inputs += at::count_nonzero(drawn[i].tensor).item<double>();
  }
  for (std::size_t o = 0; o < before.size(); ++o) {
    const double elements = static_cast<double>(before[o].numel());
    // (Of so many terms one alone is not seen.)
    if (elements == 0 || 2 * elements > inputs || elements * kMostTerms < inputs) continue;
    const double share = std::min(0.5, kEach * elements / inputs);
    const int runs = static_cast<int>(std::clamp(kLeast / elements, 1.0, static_cast<double>(kMostRuns)));
    double same = 0, count = 0;
    for (int run = 0; run < runs; ++run) {
      *whole = *whole && (first || Since(begin) < kSeconds);
      if (!*whole) break;
      first = false;
      for (std::size_t i = 0; i < manners_.size(); ++i) {
        at::Tensor& to = leaves_[0][i].tensor;
        if (manners_[i].varied) {
          Mix(to, drawn[i].tensor, share, [](const at::Tensor&, const at::Tensor& from) { return from * 0.5; });
        } else if (!leaves_[0][i].scalar) {
          to.copy_(manners_[i].same_as == SIZE_MAX ? drawn[i].tensor : leaves_[0][manners_[i].same_as].tensor);
        }
      }
      std::vector<at::Tensor> after;
      try {
        after = OutputsOf(leaves_[0]);
      } catch (const ProblemError& error) {  // it does not bear such values: nothing is known
        *whole = *whole && !TellsOfMemory(error);
        return false;
      }
      if (o >= after.size() || after[o].sizes() != before[o].sizes()) break;
      const at::Tensor some = before[o].ne(0);
      count += some.sum().item<double>();
      same += at::logical_and(some, before[o].eq(after[o])).sum().item<double>();
    }
    if (count > 0 && same > kMostChosen * count) return true;
    if (!*whole) break;
  }
  return false;
}

// Whether most slices of an input (keys of a sharp attention, of which each query needs a few) have no part in most of
// the results that depend on them: who has seen a draw knows which. What depends on a slice is what becomes NaN with
// it; it has a part where a result is another when the slice is halved.
bool Values::SlicesIdle(const std::vector<Leaf>& drawn, bool* whole) {
  if (!Varies()) return false;
  // What a program makes of NaN on its way (an index, say) may be the end of a device.
  if (ops_.cuda() && !problem_.continuous) return false;
  constexpr std::int64_t kLeastSlices = 16;
  constexpr int kRuns = 4;
  constexpr double kIdle = 0.8;  // (a causal mask takes half off on average)
  constexpr double kSeconds = 2, kMostSeconds = 10, kEvaluations = 8;
  // Sums of half types do not show a term that is halved.
  const std::vector<at::Tensor> plain = OutputsOf(drawn);
  const auto half = [](const at::Tensor& one) { return IsHalf(one.scalar_type()); };
  const bool wide = std::any_of(plain.begin(), plain.end(), half);
  if (wide && problem_.double_seconds < 0) return false;
  const Mode mode = wide ? Mode::kDouble : Mode::kEager;
  const std::vector<at::Tensor> before = wide ? OutputsOf(drawn, mode) : plain;
  const double each = wide ? problem_.double_seconds : problem_.reference_seconds;
  Turns turns(std::min(std::max(kSeconds, kEvaluations * each), kMostSeconds));
  const auto with = [&](std::size_t input, std::int64_t dim, std::int64_t slice, double factor) {
    for (std::size_t i = 0; i < manners_.size(); ++i) {
      if (!leaves_[0][i].scalar) leaves_[0][i].tensor.copy_(drawn[i].tensor);
    }
    leaves_[0][input].tensor.select(dim, slice).mul_(factor);
    for (std::size_t i = 0; i < manners_.size(); ++i) {
      if (manners_[i].same_as != SIZE_MAX) leaves_[0][i].tensor.copy_(leaves_[0][manners_[i].same_as].tensor);
    }
    return OutputsOf(leaves_[0], mode);
  };
  struct Slices {
    std::size_t input;
    std::int64_t dim, size;
    std::vector<double> count, same;  // of each output
  };
  std::vector<Slices> all;
  for (std::size_t i = 0; i < manners_.size(); ++i) {
    for (std::int64_t dim = 0; manners_[i].varied && dim < drawn[i].tensor.dim(); ++dim) {
      const std::int64_t size = drawn[i].tensor.size(dim);
      const std::vector<double> none(before.size(), 0);
      if (size >= kLeastSlices) all.push_back({i, dim, size, none, none});
    }
  }
  // The more slices there are, the more there is to gain.
  std::stable_sort(all.begin(), all.end(), [](const Slices& a, const Slices& b) { return a.size > b.size; });
  for (int run = 0; run < kRuns && *whole; ++run) {
    for (Slices& slices : all) {
      *whole = *whole && turns.Take(2 * each);
      if (!*whole) break;
      const auto slice = static_cast<std::int64_t>(random_.Below(static_cast<std::uint64_t>(slices.size)));
      // (Zeros that are halved stay what they are.)
      const at::Tensor chosen = drawn[slices.input].tensor.select(slices.dim, slice);
      if (at::count_nonzero(chosen).item<std::int64_t>() == 0) continue;
      std::vector<at::Tensor> without, halved;
      try {
        without = with(slices.input, slices.dim, slice, std::numeric_limits<double>::quiet_NaN());
        halved = with(slices.input, slices.dim, slice, 0.5);
      } catch (const ProblemError& error) {  // it does not bear such values: nothing is known
        *whole = *whole && !TellsOfMemory(error);
        return false;
      } catch (const std::exception&) {  // no room now
        *whole = false;
        return false;
      }
      for (std::size_t o = 0; o < before.size() && o < without.size() && o < halved.size(); ++o) {
        if (!Fractions(before[o]) || without[o].sizes() != before[o].sizes() ||
            halved[o].sizes() != before[o].sizes()) {
          continue;
        }
        // (A result that is zero may be so whatever there is.)
        const at::Tensor depends = at::isnan(without[o]).logical_and(before[o].ne(0));
        slices.count[o] += depends.sum().item<double>();
        slices.same[o] += depends.logical_and(before[o].eq(halved[o])).sum().item<double>();
      }
    }
  }
  return std::any_of(all.begin(), all.end(), [&](const Slices& slices) {
    for (std::size_t o = 0; o < before.size(); ++o) {
      if (slices.same[o] > kIdle * slices.count[o]) return true;
    }
    return false;
  });
}

// Whether most of what the program makes on its way has no part in the results (units that a rectifier takes off before
// a product, weights of a softmax over parameters), though all inputs have: who has seen a draw knows which.
bool Values::IdleInside(const std::vector<Leaf>& drawn, const std::vector<Leaf>& other) {
  if (problem_.idle_inside) return *problem_.idle_inside;
  constexpr double kMostSecondsEach = 0.5, kMostSecondsLooking = 2;
  const auto look = [&] {
    if (!Varies()) return false;
    bool half = false;
    for (const at::Tensor& result : OutputsOf(drawn)) half = half || IsHalf(result.scalar_type());
    const bool wide = half && problem_.double_seconds >= 0;  // the spacing of half types alone lets values stay
    if ((wide ? problem_.double_seconds : problem_.reference_seconds) > kMostSecondsEach) return false;
    const std::uint64_t seed = random_.Next() >> 1;
    const auto run = [&](const std::vector<Leaf>& from) {
      StoreVaried(0, from);
      return SomeOnTheWay(*problem_.reference, leaves_[0], wide ? Mode::kDouble : Mode::kEager, seed);
    };
    const auto begin = Clock::now();
    std::vector<OnTheWay> first = run(drawn);
    if (Since(begin) > kMostSecondsLooking) return false;
    // What the outputs' rule does not see may be left out.
    constexpr double kHalfNothing = 0x1p-12, kNothing = 0x1p-20;
    return MostIdle({std::move(first), run(drawn), run(other), run(other)}, half ? kHalfNothing : kNothing);
  };
  try {
    problem_.idle_inside = look();
  } catch (const ProblemError& error) {  // it does not bear such values: nothing is known
    if (!TellsOfMemory(error)) problem_.idle_inside = false;
  } catch (const std::exception&) {  // no room now
  }
  return problem_.idle_inside.value_or(false);
}

// Whether the results of two sets of one draw are as close to each other as some times what the rule allows: sums of
// sums, and what is compared coarsely. Then what was seen of one is right for the other.
bool Values::AveragesOut(const std::vector<Leaf>& drawn) {
  if (!Varies()) return false;
  constexpr double kTimes = 4 * 1.4142;  // the difference of two has the root of two of the deviation of one
  const std::uint64_t where = random_.Next();
  // Of large outputs a block: the whole would be held several times.
  const auto some = [where](const at::Tensor& output) {
    const at::Tensor all = output.reshape({-1});
    const std::int64_t size = std::min(all.numel(), kBlock / 4);
    const auto from = where % (static_cast<std::uint64_t>(all.numel() - size) + 1);
    return all.narrow(0, static_cast<std::int64_t>(from), size).clone();
  };
  StoreVaried(0, drawn);
  std::vector<at::Tensor> one = OutputsOf(leaves_[0]);
  for (at::Tensor& output : one) output = some(output);
  StoreVaried(0, drawn);
  std::vector<at::Tensor> two = OutputsOf(leaves_[0]);
  for (at::Tensor& output : two) output = some(output);
  for (std::size_t o = 0; o < one.size() && o < two.size() && o < allowed_.size(); ++o) {
    if (one[o].numel() == 0 || one[o].sizes() != two[o].sizes() || !Fractions(one[o])) continue;
    const at::ScalarType wide = one[o].is_complex() ? at::kComplexDouble : at::kDouble;
    at::Tensor a = one[o].to(wide).abs(), difference = (one[o].to(wide) - two[o].to(wide)).abs();
    const at::Tensor numbers = at::isfinite(a).logical_and(at::isfinite(difference));
    a = a.masked_fill(numbers.logical_not(), 0);
    difference = difference.masked_fill(numbers.logical_not(), 0);
    const double size = a.norm().item<double>(), apart = difference.norm().item<double>();
    if (size > 0 && apart <= kTimes * allowed_[o] * size) return true;
  }
  return false;
}

// What was seen of a draw, times the mean of the factors, would then be within what rounding may do.
bool Values::ManyTerms() const { return problem_.reduction >= kManyTerms; }

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
    if (!Wide() && ops_.Vary(to.data_ptr(), from.data_ptr(), wire::FindDType(ShortType(to.scalar_type())).value(),
                             static_cast<std::size_t>(to.numel()), random_.Next())) {
      continue;
    }
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
  factors_.push_back((1.0 - uniform * (Wide() ? kWide : kNarrow)).to(type));
  return Factors(type, count);
}

}  // namespace grove::judge
