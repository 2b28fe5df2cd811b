#include "worker/judge/by_keys.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <memory>

#include "worker/judge/choices.h"
#include "worker/judge/compare_tensors.h"
#include "worker/judge/distributions.h"
#include "worker/judge/tensor_type.h"
#include "worker/judge/turns.h"

namespace grove::judge {
namespace {

constexpr double kMostSecondsEach = 0.5;  // of one evaluation in float64
constexpr char kWhy[] = "keys at these positions are not those at the reference's";

// The operation whose places this output is; null where there is none.
const Choice* Find(const Chosen& chosen, std::size_t output) {
  if (output >= chosen.outputs.size()) return nullptr;
  for (const Choice& choice : chosen.choices) {
    // (Of all elements at once there may be as many dimensions as before.)
    const bool along = choice.places.dim() == choice.keys.dim() || choice.gone();
    if (along && !choice.often && Fractions(choice.keys) && !choice.keys.is_complex() &&
        Is(chosen.outputs[output], choice)) {
      return &choice;
    }
  }
  return nullptr;
}

// What keys are off by: the root of the mean of squares, of each by itself and of all that are of the size of those
// that were chosen (a mask's -1e9 is not, and what rounding makes of it is nothing to the others).
class Errors {
 public:
  Errors(const Choice& high, const at::Tensor& best) : high_(high.keys.to(at::kDouble)) {
    const at::Tensor chosen = KeysAt(high, best).to(at::kDouble).abs();
    near_ = high_.abs().le(2 * chosen.masked_fill(at::isfinite(chosen).logical_not(), 0).max());
  }

  void Add(const at::Tensor& keys) {
    const at::Tensor squares = (keys.to(at::kDouble) - high_).square();
    const at::Tensor known = squares.masked_select(near_.logical_and(at::isfinite(squares)));
    if (known.numel() > 0) all_ += known.mean().item<double>();
    squares_ = squares_.defined() ? squares_ + squares : squares;
    ++count_;
  }
  int count() const { return count_; }
  double OfAll() const { return std::sqrt(all_ / std::max(count_, 1)); }
  // Of those that stand at these places; At: no less than that of all.
  at::Tensor Each(const Choice& choice, const at::Tensor& places) const { return AtLeast(0, choice, places); }
  at::Tensor At(const Choice& choice, const at::Tensor& places) const { return AtLeast(all_, choice, places); }

 private:
  at::Tensor AtLeast(double least, const Choice& choice, const at::Tensor& places) const {
    Choice squares = choice;
    squares.keys = squares_.nan_to_num(0, 0, 0);
    return (KeysAt(squares, places).clamp_min(least) / count_).sqrt();
  }

  const at::Tensor high_;
  at::Tensor near_, squares_;
  double all_ = 0;
  int count_ = 0;
};

Comparison TheVerySame(const Choice& choice, const at::Tensor& places, const at::Tensor& got) {
  Comparison compared;
  const at::Tensor wrong = AsGood(choice, places, got).logical_not().reshape({-1});
  compared.elements = got.numel();
  compared.mismatched = wrong.sum().item<std::int64_t>();
  compared.ok = compared.passes_scaled = compared.passes_1e4 = compared.passes_1e2 = compared.mismatched == 0;
  if (compared.ok) return compared;
  compared.why = kWhy;
  compared.worst = wrong.to(at::kLong).argmax().item<std::int64_t>();
  const auto key = [&](const at::Tensor& at) {
    return KeysAt(choice, at).reshape({-1})[compared.worst].to(at::kDouble).item<double>();
  };
  compared.expected = key(places);
  compared.got = key(got);
  return compared;
}

// What is known of the keys behind an output of positions. It holds the runs that its choices are of.
struct Keys {
  Chosen plain, exact;
  const Choice *written = nullptr, *high = nullptr;
  at::Tensor places, best;  // the reference's, as written and in float64
  std::optional<Errors> responses, own;
};

constexpr int kNudges = 12;           // as for outputs of few elements (expected.cc): one nudge says little of one key
constexpr double kMostSeconds = 0.1;  // for all of them

bool Fits(const at::Tensor& got, const Rule& rule) {
  return got.scalar_type() == at::kLong && got.numel() > 0 && rule.mode == RuleMode::kScaled;
}

// As written alone where keys have to be the very same. Null where there is nothing to know.
std::unique_ptr<Keys> Look(LoadedProblem& problem, const std::vector<Leaf>& leaves, std::size_t output,
                           const at::Tensor& got, Random* secret) {
  Reference& reference = *problem.reference;
  const bool very_same = problem.ExactnessOf(output) != Exactness::kRounded;
  if (!very_same && (problem.double_seconds < 0 || problem.double_seconds > kMostSecondsEach)) return nullptr;
  auto keys = std::make_unique<Keys>();
  keys->plain = ChosenBy(reference, leaves, Mode::kEager);
  keys->written = Find(keys->plain, output);
  if (keys->written == nullptr || keys->plain.outputs[output].sizes() != got.sizes()) return nullptr;
  keys->places = keys->plain.outputs[output];
  // Of NaN programs make what they like.
  if (KeysAt(*keys->written, keys->places).isnan().any().item<bool>()) return nullptr;
  if (very_same) return keys;
  keys->exact = ChosenBy(reference, leaves, Mode::kDouble);
  keys->high = Find(keys->exact, output);
  if (keys->high == nullptr || keys->high->keys.sizes() != keys->written->keys.sizes() ||
      keys->exact.outputs[output].sizes() != got.sizes()) {
    return nullptr;
  }
  keys->best = keys->exact.outputs[output];
  keys->responses.emplace(*keys->high, keys->best);
  keys->own.emplace(*keys->high, keys->best);
  keys->own->Add(keys->written->keys);
  Turns turns(kMostSeconds);
  for (int nudge = 0; nudge < kNudges && (nudge == 0 || turns.Take(problem.double_seconds)); ++nudge) {
    const Chosen moved = ChosenBy(reference, Nudge(leaves, kNudge, secret, problem.Still()), Mode::kDouble);
    const Choice* const nudged = Find(moved, output);
    if (nudged == nullptr || nudged->keys.sizes() != keys->high->keys.sizes()) return nullptr;
    keys->responses->Add(nudged->keys);
  }
  return keys;
}

}  // namespace

std::vector<std::optional<double>> KeySizes(Reference& reference, const std::vector<Leaf>& leaves) {
  const Chosen chosen = ChosenBy(reference, leaves, Mode::kEager);
  std::vector<std::optional<double>> sizes(chosen.outputs.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const Choice* const choice = Find(chosen, i);
    if (choice == nullptr || chosen.outputs[i].numel() == 0) continue;
    const at::Tensor squares = KeysAt(*choice, chosen.outputs[i]).to(at::kDouble).square();
    sizes[i] = std::sqrt(squares.masked_fill(at::isfinite(squares).logical_not(), 0).mean().item<double>());
  }
  return sizes;
}

std::optional<Comparison> CompareByKeys(LoadedProblem& problem, const std::vector<Leaf>& leaves, std::size_t output,
                                        const at::Tensor& got, const Rule& rule, Random* secret) {
  if (!Fits(got, rule)) return std::nullopt;
  try {
    const std::unique_ptr<Keys> keys = Look(problem, leaves, output, got, secret);
    if (keys == nullptr) return std::nullopt;
    if (keys->high == nullptr) return TheVerySame(*keys->written, keys->places, got);
    ComparedTensors tensors;
    tensors.reference = KeysAt(*keys->written, keys->places).contiguous();
    tensors.got = KeysAt(*keys->high, got).to(tensors.reference.scalar_type());
    tensors.got = tensors.got.masked_fill(Misplaced(*keys->high, got), NAN).contiguous();
    tensors.high = KeysAt(*keys->high, keys->best).to(at::kDouble).contiguous();
    tensors.nudged = (tensors.high + keys->responses->At(*keys->high, keys->best)).contiguous();
    tensors.reduction = problem.ReductionOf(output);
    tensors.own_error = keys->own->OfAll();  // of few that are chosen they may be small by chance
    Comparison compared = CompareTensors(tensors, rule);
    if (!compared.ok && !compared.undecided) compared.why = std::string(kWhy) + ": " + compared.why;
    return compared;
  } catch (const std::exception&) {  // no memory to look
    return std::nullopt;
  }
}

at::Tensor RightByKeys(LoadedProblem& problem, const std::vector<Leaf>& leaves, std::size_t output,
                       const at::Tensor& got, const Rule& rule, Random* secret) {
  if (!Fits(got, rule)) return {};
  try {
    const std::unique_ptr<Keys> keys = Look(problem, leaves, output, got, secret);
    if (keys == nullptr || keys->high == nullptr) return {};
    const Choice &high = *keys->high, &written = *keys->written;
    const wire::DType type = wire::FindDType(ShortType(written.keys.scalar_type())).value();
    const double work = WorkError(type, problem.ReductionOf(output), rule);
    const at::Tensor there = KeysAt(high, got).to(at::kDouble), best = KeysAt(high, keys->best).to(at::kDouble);
    const at::Tensor moves = at::maximum(keys->responses->Each(high, got), keys->responses->Each(high, keys->best));
    const at::Tensor limit =
        kTailFactor * (moves * (work / kNudge) + at::maximum(there.abs(), best.abs()) * ConstantsFor(type).epsilon);
    at::Tensor right = (there - best).abs().le(limit).logical_and(Misplaced(high, got).logical_not());
    if (written.first || written.stable) {
      const auto same = [&](const Choice& choice) { return KeysAt(choice, got).eq(KeysAt(choice, keys->places)); };
      right = right.logical_and(same(written).logical_and(same(high)).logical_not());
    }
    return right.logical_or(got.eq(keys->places));
  } catch (const std::exception&) {  // no memory to look
    return {};
  }
}

}  // namespace grove::judge
