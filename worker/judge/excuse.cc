#include "worker/judge/excuse.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "worker/judge/by_keys.h"
#include "worker/judge/choices.h"
#include "worker/judge/closed_masks.h"
#include "worker/judge/distributions.h"
#include "worker/judge/figures.h"
#include "worker/judge/fills.h"
#include "worker/judge/shaken.h"
#include "worker/judge/tensor_type.h"
#include "worker/judge/verdict.h"

namespace grove::judge {
namespace {

constexpr double kLooking = 8;  // looking at each operation's operands takes so much longer than the program alone

// What the other rules say is of what was given, and not of what is right in the place of some of it.
void Excused(const Comparison& given, Comparison* others) {
  others->excused = others->ok;
  others->passes_1e4 = given.passes_1e4;
  others->passes_1e2 = given.passes_1e2;
  others->max_abs_error = given.max_abs_error;
  others->max_rel_error = given.max_rel_error;
}

// Where one of these is infinite: infinity instead of a number, or the reverse, is off by nothing that can be kept, or
// allowed.
at::Tensor Infinite(const at::Tensor& got, const at::Tensor& reference) {
  return at::isinf(got).logical_or(at::isinf(reference));
}

// What each element may be off by, in the shape of these.
at::Tensor Allowed(const at::Tensor& got, const at::Tensor& high, double slack, double most) {
  const at::Tensor size = at::where(at::isfinite(high), high.to(at::kDouble), got.to(at::kDouble)).abs();
  return size.masked_fill(at::isfinite(size).logical_not(), 0) * slack + most;
}

struct Selected {  // for as long as it lives, whatever ends it
  Selected(Reference& of, std::size_t shape_set) : reference(of) { reference.SelectShapeSet(shape_set); }
  ~Selected() { reference.SelectShapeSet(0); }
  Selected(const Selected&) = delete;
  Selected& operator=(const Selected&) = delete;
  Reference& reference;
};

}  // namespace

Comparison Excuses::ByKeys(const Source& of, const at::Tensor& got, const Rule& rule) {
  const Selected selected(reference_, of.shape_set);
  std::optional<Comparison> compared = CompareByKeys(problem_, of.leaves, of.output, got, rule, &secret_);
  if (!compared) {
    throw Verdict{"VERDICT_UNMEASURABLE",
                  "the keys of an output of positions could be computed once, and not again: "
                  "there is no memory for it any more",
                  {}};
  }
  return *std::move(compared);
}

Comparison Excuses::Compare(const Source& of, ComparedTensors tensors, const Rule& rule, Turns* turns) {
  if (of.by_keys) return ByKeys(of, tensors.got, rule);
  Comparison compared = CompareTensors(tensors, rule);
  const at::Tensor& reference = tensors.reference;
  const bool jumps = compared.ok && compared.jumps > 0 && !Fractions(reference);  // they are counted
  const std::int64_t differ = compared.mismatched;
  if (((compared.mismatched > 0 && (!compared.ok || compared.undecided)) || jumps) &&
      (rule.mode == RuleMode::kScaled || !Fractions(reference))) {
    compared = OtherwiseAsGood(of, tensors, std::move(compared), rule);
    // (Where another choice was as good, those that are left are not known one by one.)
    if (jumps && compared.ok && compared.mismatched == differ) {
      AskForJumps(of, tensors, rule, &compared);
    }
    if (!Fractions(reference)) return compared;
  }
  at::Tensor inside;
  compared = OfInnerRounding(of, tensors, std::move(compared), rule, &inside);
  if (problem_.ExactnessOf(of.output) == Exactness::kRounded) {
    const auto rounding = [&] { return FindInside(of, tensors, rule, &inside) ? inside : at::Tensor(); };
    compared = EachFigure(tensors, std::move(compared), rule, rounding);
    compared = BesideFills(tensors, problem_.continuous, std::move(compared), rule, rounding);
  }
  compared = OfClosedMasks(of, tensors, std::move(compared), rule);
  return BeyondThresholds(of, std::move(tensors), std::move(compared), rule, turns);
}

Comparison Excuses::OfClosedMasks(const Source& of, ComparedTensors tensors, Comparison compared, const Rule& rule) {
  constexpr double kMostSecondsEach = 1;  // of one evaluation in float64
  const at::Tensor reference = tensors.reference;
  if (compared.ok || compared.undecided || rule.mode != RuleMode::kScaled || !rule.any_order ||
      !tensors.high.defined() || reference.is_complex() || problem_.double_seconds < 0 ||
      problem_.double_seconds > kMostSecondsEach) {
    return compared;
  }
  try {
    const Selected selected(reference_, of.shape_set);
    const auto closed_of = [&](const std::vector<Leaf>& leaves) {
      const std::vector<at::Tensor> outputs = WithClosedMasks(reference_, leaves);
      const bool there = of.output < outputs.size() && outputs[of.output].sizes() == reference.sizes();
      return there ? outputs[of.output].to(tensors.high.device(), at::kDouble) : at::Tensor();
    };
    const at::Tensor closed = closed_of(of.leaves);
    if (!closed.defined() || closed.equal(tensors.high.to(at::kDouble))) return compared;
    // Of a row that is masked as a whole, or of what was no mask, nothing is known.
    if (!FiniteThere({tensors.high}, Finite({closed}))) return compared;
    std::vector<Leaf> moved = Nudge(of.leaves, problem_.NudgeOf(kNudge), &secret_, problem_.Still());
    for (std::size_t i = 0; i < moved.size(); ++i) {  // masks stay
      if (IsWhole(of.leaves[i])) moved[i] = of.leaves[i];
    }
    tensors.nudged = closed_of(moved);
    tensors.wide = at::Tensor();
    if (!tensors.nudged.defined()) return compared;
    tensors.high = closed;
    tensors.reference = closed.to(reference.scalar_type());
    Comparison others = CompareTensors(tensors, rule);
    if (!others.ok) return compared;
    others.noise = compared.noise;
    Excused(compared, &others);
    return others;
  } catch (const std::exception&) {  // no memory to look: as it was found
    return compared;
  }
}

bool Excuses::FindInside(const Source& of, const ComparedTensors& tensors, const Rule& rule, at::Tensor* inside) {
  constexpr double kMostSecondsEach = kMostSeconds / kLooking / kLeastRunsInside;
  if (inside->defined()) return true;
  if (problem_.KnowsDouble() || (problem_.widened && !rule.any_order)) return false;
  if (problem_.double_seconds < 0 || problem_.double_seconds > kMostSecondsEach) return false;
  try {
    Turns turns(kMostSeconds);
    const Choosing choosing(expecting_.chosen());
    const Selected selected(reference_, of.shape_set);
    *inside = RoundingInside(reference_, of.leaves, of.output, tensors.high, tensors.reduction, rule.any_order,
                             &secret_, &turns, kLooking * problem_.double_seconds);
  } catch (const std::exception&) {  // no memory to look
  }
  return inside->defined();
}

Reached Excuses::OfRounding(const Source& of, const ComparedTensors& tensors, const at::Tensor& allowed, Turns* turns) {
  // (Where float32 goes on with what float64 made, it is not known which of them rounds.)
  if (problem_.KnowsDouble() && !problem_.in_double) return {};
  return ReachedByRounding(reference_, of.leaves, of.output, tensors.got, tensors.high, allowed, tensors.reduction,
                           problem_.in_double, &secret_, turns, kLooking * problem_.double_seconds);
}

Comparison Excuses::OfInnerRounding(const Source& of, const ComparedTensors& tensors, Comparison compared,
                                    const Rule& rule, at::Tensor* inside) {
  const at::Tensor& reference = tensors.reference;
  constexpr std::int64_t kMost = 1 << 16;
  if (compared.ok || compared.undecided || rule.mode != RuleMode::kScaled || !tensors.high.defined() ||
      reference.scalar_type() != at::kFloat || reference.numel() > kMost ||
      problem_.ExactnessOf(of.output) == Exactness::kExact || !FindInside(of, tensors, rule, inside)) {
    return compared;
  }
  const at::Tensor known = at::isfinite(*inside);
  const at::Tensor errors = inside->masked_select(known);
  if (errors.numel() == 0) return compared;
  if (reference.numel() > Expecting::kFew) {
    // Of many each may be off by what it is itself, and what is beyond that is judged as it was, or what is left out of
    // one would be lost in the others' size.
    constexpr double kTimes = 8, kSpacings = 0x1p-21, kBeyond = 1e-3;
    const at::Tensor high = tensors.high.to(at::kDouble), off = (tensors.got.to(at::kDouble) - high).abs();
    const at::Tensor within = off.le(*inside * kTimes + high.abs() * kSpacings).logical_and(known);
    if (within.logical_not().sum().item<double>() > kBeyond * static_cast<double>(reference.numel())) return compared;
    ComparedTensors rest = tensors;
    rest.got = at::where(within, high.to(tensors.got.scalar_type()), tensors.got);
    Comparison others = CompareTensors(rest, rule);
    if (!others.ok) return compared;
    others.noise = compared.noise;
    Excused(compared, &others);
    return others;
  }
  return CompareWithErrors(tensors, std::sqrt(errors.square().mean().item<double>()), std::move(compared), rule);
}

Comparison Excuses::BeyondThresholds(const Source& of, ComparedTensors tensors, Comparison compared, const Rule& rule,
                                     Turns* turns) {
  constexpr std::int64_t kFew = 16, kMostElements = std::int64_t{1} << 26;
  constexpr double kMostSecondsEach = 1;  // of one evaluation in float64
  const at::Tensor& reference = tensors.reference;
  if (compared.ok || compared.undecided || rule.mode != RuleMode::kScaled || !tensors.nudged.defined() ||
      !Fractions(reference) || reference.is_complex() || reference.numel() > kMostElements) {
    return compared;
  }
  // Programs of half types round on their way, and large values make steps of what saturates (a clamp or a hyperbolic
  // tangent behind a product): many elements are at one. Each of them is asked for.
  const bool rounds = IsHalf(reference.scalar_type()) && rule.any_order;
  if ((problem_.continuous && !rounds) || problem_.ExactnessOf(of.output) == Exactness::kExact ||
      problem_.double_seconds > kMostSecondsEach) {
    return compared;
  }
  // As for the reference's own jumps, no more than a share: outputs of few elements would be nothing else.
  const auto share = static_cast<std::int64_t>(kMostOwnJumps * static_cast<double>(reference.numel()));
  const std::int64_t few = rounds ? share : std::min(kFew, share);
  if (compared.mismatched > few * kNeighbours) return compared;
  // What one element may be off by where the reference's own errors, which may be such jumps, are not looked at.
  const wire::DType type = wire::FindDType(ShortType(reference.scalar_type())).value();
  const ScaledConstants constants = ConstantsFor(type);
  const double work = WorkError(type, tensors.reduction, rule);
  const double most = kTailFactor * (constants.rounding + work * compared.noise.condition) * compared.rms;
  try {
    const at::Tensor got = tensors.got.reshape({-1}), high = tensors.high.reshape({-1}).to(at::kDouble);
    const at::Tensor plain = reference.reshape({-1}), infinite = Infinite(got, plain);
    const at::Tensor expected = at::where(at::isfinite(high), high, plain.to(at::kDouble));
    const at::Tensor allowed = Allowed(got, expected, constants.element_slack, most);
    const at::Tensor off = (got.to(at::kDouble) - expected).abs().gt(allowed);  // of NaN: false
    const at::Tensor beyond = at::where(infinite, got.ne(plain).logical_and(at::isnan(got).logical_not()), off);
    const auto count = beyond.sum().item<std::int64_t>();
    if (count == 0 || count > few) return compared;
    const at::Tensor positions = beyond.nonzero().reshape({-1});
    reference_.SelectShapeSet(of.shape_set);
    const double size = rounds ? std::max(work, constants.rounding / 2)
                        : problem_.in_double
                            ? WorkError(wire::FindDType("float32").value(), tensors.reduction, rule)  // as nudges are
                            : work;
    const at::Tensor reached = expecting_.ComesOut(of.leaves, of.output, positions, tensors.got,
                                                   allowed.index_select(0, positions), size, turns, rounds);
    reference_.SelectShapeSet(0);
    const at::Tensor excused = positions.masked_select(reached);
    if (excused.numel() == 0) return compared;
    const at::Tensor right = at::where(infinite, plain, expected.to(got.scalar_type())).index_select(0, excused);
    tensors.got = got.index_copy(0, excused, right).reshape(reference.sizes());
    Comparison others = CompareTensors(tensors, rule);
    Excused(compared, &others);
    return others;
  } catch (const std::exception&) {  // no memory to look: as it was found
    reference_.SelectShapeSet(0);
    return compared;
  }
}

void Excuses::AskForJumps(const Source& of, const ComparedTensors& tensors, const Rule& rule, Comparison* compared) {
  constexpr std::int64_t kFew = 16;
  constexpr double kFurther = 64;  // than the work's own rounding, which has its part behind the inputs, too
  constexpr int kEvaluations = 2 * Expecting::kMostNudges;
  if (problem_.continuous || problem_.ExactnessOf(of.output) != Exactness::kRounded || problem_.double_seconds < 0 ||
      kEvaluations * problem_.double_seconds > kMostSeconds || !tensors.nudged.defined()) {
    return;
  }
  // Programs of half types round on their way, where and how often is theirs to choose: much further than this.
  const auto half = [](const at::Tensor& one) { return one.defined() && IsHalf(one.scalar_type()); };
  for (const Leaf& leaf : of.leaves) {
    if (!leaf.scalar && half(leaf.tensor)) return;
  }
  for (const auto& [name, parameter] : reference_.Parameters()) {
    if (half(parameter)) return;
  }
  const wire::DType type = wire::FindDType("float32").value();
  const double work = WorkError(type, tensors.reduction, rule);
  try {
    at::Tensor positions = tensors.got.ne(tensors.reference).reshape({-1}).nonzero().reshape({-1});
    if (positions.numel() > kFew) {  // some of them, nobody knows which
      std::vector<std::int64_t> some;
      for (std::int64_t one = 0; one < kFew; ++one) {
        some.push_back(static_cast<std::int64_t>(secret_.Below(static_cast<std::uint64_t>(positions.numel()))));
      }
      positions = positions.index_select(0, at::tensor(some, at::kLong).to(positions.device()));
    }
    const at::Tensor exact = at::zeros({positions.numel()}, positions.options().dtype(at::kDouble));
    at::Tensor reached = at::zeros_like(exact, at::kBool);
    reference_.SelectShapeSet(of.shape_set);
    int nudges = 0;
    for (double size : {work, kFurther * work}) {
      Turns turns(kMostSeconds);
      reached.logical_or_(expecting_.ComesOut(of.leaves, of.output, positions, tensors.got, exact, size, &turns,
                                              /*between=*/false, &nudges));
      if (reached.all().item<bool>()) break;
    }
    if (nudges == kEvaluations && !reached.all().item<bool>()) {
      // What no input decides (a largest value over itself) is rounded all the same.
      Turns turns(kMostSeconds);
      const Reached inside = OfRounding(of, tensors, at::Tensor(), &turns);
      if (inside.elements.defined()) reached.logical_or_(inside.elements.reshape({-1}).index_select(0, positions));
    }
    if (nudges == kEvaluations && !reached.all().item<bool>()) {
      compared->ok = compared->passes_scaled = compared->excused = false;
      compared->why = "values of an exact type differ that no rounding takes there";
    }
  } catch (const std::exception&) {  // no memory to look: as it was found
  }
  reference_.SelectShapeSet(0);
}

Comparison Excuses::OtherwiseAsGood(const Source& of, ComparedTensors tensors, Comparison compared, const Rule& rule) {
  constexpr double kMostSecondsEach = 0.5;  // of one evaluation in float64
  // So few may be at a tie of two values that are the same by symmetry, which rounding breaks and no nudge does.
  constexpr std::int64_t kFew = 16;
  const at::Tensor& reference = tensors.reference;
  const bool fractions = Fractions(reference), passed = compared.ok && !compared.undecided;
  if (reference.is_complex() || problem_.continuous) return compared;
  constexpr double kOrdering = 4;  // keys anew takes longer than the program alone
  Turns turns(kMostSeconds);       // of its own: what comes after needs some, too
  const Selected selected(reference_, of.shape_set);
  const auto passes = [&] {
    return compared.jumps == 0 && (compared.mismatched == 0 || (compared.ok && !compared.undecided));
  };
  double most = 0, slack = 0;  // what an element may be off by
  // The same comparison with what is right in the place of what was reached. Fractions: of elements that are another
  // value altogether, and they keep what they are off by.
  const auto without = [&](const Reached& reached, bool chosen) {
    const at::Tensor& got = tensors.got;
    if (!fractions) {
      tensors.got = at::where(reached.elements, reference, got);
    } else {
      const at::Tensor right = (tensors.high.defined() ? tensors.high : reference).to(at::kDouble);
      const at::Tensor limit = right.abs() * slack + most, given = got.to(at::kDouble);
      const at::Tensor other = reached.values.to(at::kDouble);
      const at::Tensor infinite = Infinite(got, reference).logical_or(at::isinf(right));
      const at::Tensor far = (given - right).abs().gt(limit).logical_and((other - right).abs().gt(limit));
      const at::Tensor off = chosen ? reached.values.ne(reference) : at::where(infinite, got.ne(reference), far);
      const at::Tensor kept = at::where(infinite, reference, (right + (given - other)).to(got.scalar_type()));
      tensors.got = at::where(reached.elements.logical_and(off), kept, got);
    }
    Comparison others = CompareTensors(tensors, rule);
    Excused(compared, &others);
    compared = std::move(others);
  };
  try {
    bool places = false;
    if (!fractions) {
      const at::Tensor chosen = WithEqualChoices(reference_, of.leaves, of.output, tensors.got, &places);
      if (chosen.defined()) {
        tensors.got = chosen;
        compared = CompareTensors(tensors, rule);
      }
      if (passes()) return compared;
      // Which of two near keys is the larger is rounding's; how near they are is not.
      if (problem_.ExactnessOf(of.output) == Exactness::kRounded && problem_.double_seconds <= kMostSecondsEach) {
        const at::Tensor right = RightByKeys(problem_, of.leaves, of.output, tensors.got, rule, &secret_);
        if (right.defined()) {
          tensors.got = at::where(right, reference, tensors.got);
          Comparison others = CompareTensors(tensors, rule);
          Excused(compared, &others);
          compared = std::move(others);
          if (passes()) return compared;
        }
      }
    }
    const wire::DType type = wire::FindDType(ShortType(reference.scalar_type())).value();
    if (fractions) {
      const ScaledConstants constants = ConstantsFor(type);
      slack = constants.element_slack;
      most = kTailFactor * (constants.rounding + WorkError(type, tensors.reduction, rule)) * compared.rms;
    }
    if (!places && (problem_.chooses || problem_.exactness.empty())) {
      const Reached reached = ReachedByOtherChoices(reference_, of.leaves, of.output, tensors.got, most, slack, &turns,
                                                    kOrdering * problem_.reference_seconds);
      if (reached.elements.defined()) without(reached, /*chosen=*/true);
      if (reached.order != Reached::kOther) expecting_.Choose(reached.order);
      if (passes()) return compared;
    }
    // Of numbers as many as nudges make jump may do so. Of infinities none may, and each is asked for.
    const auto infinite = [&] {
      return Infinite(tensors.got, reference).logical_and(tensors.got.ne(reference)).sum().item<std::int64_t>();
    };
    // (What passed, and was only counted, is not asked for so much; and where rounding takes as many elsewhere, nothing
    // would be excused.)
    if (passed || static_cast<double>(compared.mismatched) > kMostJumps * static_cast<double>(reference.numel()) ||
        (fractions && !tensors.high.defined()) || !expecting_.has_high() ||
        problem_.ExactnessOf(of.output) != Exactness::kRounded || problem_.double_seconds > kMostSecondsEach ||
        (compared.mismatched > kFew && !HasWholeNumbers(of.leaves) && compared.mismatched - infinite() > kFew)) {
      return compared;
    }
    const at::Tensor allowed = fractions ? Allowed(tensors.got, tensors.high, slack, most) : at::Tensor();
    const Reached reached = OfRounding(of, tensors, allowed, &turns);
    if (reached.elements.defined()) without(reached, /*chosen=*/false);
  } catch (const std::exception&) {  // no memory to look: as it was found
  }
  return compared;
}

}  // namespace grove::judge
