#include "worker/judge/other_draws.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iterator>
#include <set>
#include <utility>

#include "worker/judge/by_keys.h"
#include "worker/judge/choices.h"
#include "worker/judge/closed_masks.h"
#include "worker/judge/compare_tensors.h"
#include "worker/judge/conversions.h"
#include "worker/judge/few_integers.h"
#include "worker/judge/findings.h"
#include "worker/judge/fixed_inputs.h"
#include "worker/judge/meeting.h"
#include "worker/judge/one_term.h"
#include "worker/judge/other_integers.h"
#include "worker/judge/problem_error.h"
#include "worker/judge/rare_values.h"
#include "worker/judge/tensor_type.h"
#include "worker/judge/verdict.h"

namespace grove::judge {
namespace {

// No distribution where the reference's own rounding error, or what the rule would allow, is more than this of the
// output: what is compared there is noise.
constexpr double kMostNoise = 0.5;

constexpr char kGrowsThere[] = "the reference's own results are a million times as large there";

// Where results are so much larger than the problem's own, one honest program may overflow where another does not: the
// gradient of a normalisation, which divides by the epsilon; an exponential of what a bound is for.
bool Grown(const Expected& expected, const Rules& rules) {
  constexpr double kGrown = 0x1p20;
  for (std::size_t i = 0; i < expected.plain.size() && i < rules.units.size(); ++i) {
    const at::Tensor& plain = expected.plain[i];
    if (!Fractions(plain) || plain.numel() == 0 || rules.units[i] == 0) continue;
    if (plain.abs().max().item<double>() > kGrown * rules.units[i]) return true;
  }
  return false;
}

// Exponentials of what is far below zero: some programs give zeros in place of numbers that are nearly that.
bool NothingLeft(const Expected& expected) {
  constexpr double kNothing = 0x1p-100;
  for (std::size_t i = 0; i < expected.plain.size(); ++i) {
    const at::Tensor& plain = expected.plain[i];
    if (expected.LeftOut(i) || !Fractions(plain) || plain.numel() == 0) continue;
    if (plain.abs().max().item<double>() < kNothing) return true;
  }
  return false;
}

// Of these outputs those that are not left out.
std::vector<at::Tensor> Asked(const Expected& expected, const std::vector<at::Tensor>& outputs) {
  std::vector<at::Tensor> asked;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!expected.LeftOut(i)) asked.push_back(outputs[i]);
  }
  return asked;
}

// A flag that says whether there are NaN has something to say beside a sum that is NaN itself.
void LeaveOutNaN(Expected* expected) {
  std::vector<bool> left_out = expected->left_out;
  left_out.resize(expected->plain.size(), false);
  for (std::size_t i = 0; i < left_out.size(); ++i) left_out[i] = left_out[i] || !AllFinite({expected->plain[i]});
  if (std::all_of(left_out.begin(), left_out.end(), [](bool out) { return out; })) return;
  expected->left_out = std::move(left_out);
}

// The device is lost, and nothing that it says is of the problem.
bool AssertFailed(const DeviceOps& ops, const std::exception& error) {
  return ops.cuda() && std::string(error.what()).find("device-side assert") != std::string::npos;
}

}  // namespace

Rule Rules::Of(std::size_t output) const {
  Rule one = rule;
  if (output < units.size()) one.unit = units[output];
  if (output < one_term.size()) one.one_term = one_term[output];
  return one;
}

Rule Rules::OfKeys(double given) const {
  Rule one = rule;
  if (!units.empty()) one.unit = given;
  return one;
}

Rules RulesOn(Distribution distribution, int form, const Rule& given, double reduced,
              const std::vector<double>& given_rms) {
  Rules rules;
  if (distribution == Distribution::kGiven) {
    rules.rule = given;
    rules.rule.leaning = true;
    return rules;
  }
  rules.rule.reduced = reduced;
  rules.rule.cap = kMostNoise;
  rules.rule.any_order = true;
  // Not where elements are left out, whose part in sums is what is looked for, nor where values are close together, and
  // results small for that.
  if (distribution == Distribution::kScaled || distribution == Distribution::kRare || Downwards(distribution, form)) {
    rules.units = given_rms;
  }
  // Next to what was taken off, an extreme, float32 has no finer numbers.
  if (distribution == Distribution::kRare && IsFar(form)) {
    for (double& unit : rules.units) unit = std::max(unit, kFar);
  }
  return rules;
}

bool OfFirstShapes(Distribution distribution, int form) {
  return distribution == Distribution::kIntegers && IsOfFew(form);
}

bool HasExact(const Slot& slot) {
  return std::any_of(slot.out.places.begin(), slot.out.places.end(),
                     [](const Place& place) { return place.type.exact(); });
}

void OtherDraws::Saw(const Expected& given) { given_finite_ = given_finite_ && AllFinite(given.plain); }

// Not where an output is of an exact type: values in which fewer bits differ are equal more often. Without float64 what
// a reference in reduced precision does to them could not be told from what the candidate does.
std::optional<OtherDraw> OtherDraws::Lean(const Slot& slot, const std::vector<Leaf>& leaves) {
  if (!expecting_.has_high() || reduced_ > 0 || HasExact(slot)) return std::nullopt;
  OtherDraw drawn{Distribution::kGiven, kLeaning, leaves, {}, "", ""};
  try {
    const Transformed made = Transform(Distribution::kGiven, kLeaning, problem_.reduction, &secret_, &drawn.leaves);
    if (!made.skipped.empty()) return std::nullopt;
    drawn.expected = expecting_.Compute(drawn.leaves, problem_.double_seconds < 0.5);
    slot.MustFit(drawn.expected.plain);
    // Values that nearly leave what the reference is defined for are of no use beyond it.
    if (given_finite_ && !AllFinite(drawn.expected.plain)) return std::nullopt;
    drawn.how = made.how;
    return drawn;
  } catch (const std::exception& error) {
    if (AssertFailed(ops_, error)) throw;
    return std::nullopt;  // the reference refuses them
  }
}

std::optional<std::size_t> OtherDraws::FactorOf(Distribution distribution, int form) const {
  if (!OneTerm(distribution, form) || !expecting_.has_high() || reduced_ > 0) return std::nullopt;
  std::set<std::size_t> factors;
  for (const auto& of_output : problem_.factors) factors.insert(of_output.begin(), of_output.end());
  const auto which = static_cast<std::size_t>(form - kOneTerm);
  if (which >= factors.size()) return std::nullopt;
  return *std::next(factors.begin(), static_cast<std::ptrdiff_t>(which));
}

Transformed OtherDraws::Make(Distribution distribution, int form, OtherDraw* drawn) {
  if (distribution == Distribution::kRare && IsFixed(form)) {
    // (A part of a mask's ones is nothing that a mask has.)
    if (LessFixed(form) && closes_rows_ == form - 1) return {"", kTried};
    return MakeOthers(form, problem_.fixed, &secret_, &drawn->leaves);
  }
  if (distribution == Distribution::kRare && form == kMeeting) {
    return MakeMeeting(problem_.rare, &secret_, &drawn->leaves);
  }
  if (distribution == Distribution::kRare) return MakeRare(form, problem_.rare, &secret_, &drawn->leaves);
  if (distribution == Distribution::kIntegers) {
    const auto draw = [this] { return reference_.Draw(SecretSeed()); };
    return IsOfFew(form) ? MakeFewIntegers(form, problem_.indices, draw, &secret_, &drawn->leaves, &drawn->crowded)
                         : MakeIntegers(form, problem_.reckoned, draw(), &secret_, &drawn->leaves);
  }
  const std::optional<std::size_t> factor = FactorOf(distribution, form);
  if (!factor) return Transform(distribution, form, problem_.reduction, &secret_, &drawn->leaves);
  for (const auto& of_output : problem_.factors) {
    drawn->one_term.push_back(std::find(of_output.begin(), of_output.end(), *factor) != of_output.end());
  }
  return KeepOneTerm(*factor, problem_.reduction, &secret_, &drawn->leaves);
}

bool OtherDraws::Idle(Distribution distribution, int form) const {
  if (distribution == Distribution::kRare) {
    return !given_finite_ || !(IsFixed(form) ? WhichFixed(form) < problem_.fixed.size() : Says(problem_.rare, form));
  }
  if (distribution != Distribution::kIntegers) return false;
  if (IsOfFew(form)) {
    return std::all_of(problem_.indices.begin(), problem_.indices.end(),
                       [](const Indices& of) { return of.use == Indices::Use::kOther; });
  }
  return std::none_of(problem_.reckoned.begin(), problem_.reckoned.end(), [](double most) { return most > 0; });
}

std::string OtherDraws::Idle(Distribution distribution) const {
  for (int form = 0; form < Forms(distribution); ++form) {
    if (!Idle(distribution, form)) return "";
  }
  if (distribution == Distribution::kIntegers)
    return "there is no integer input with which there is arithmetic alone, of numbers that 32 bits hold, and none "
           "that is nothing but indices or labels";
  return given_finite_ ? "the program names no bound and no place for NaN, it has a cosine, solves least squares or "
                         "cannot be read, and no input is "
                         "a mask, weights of a mean or alike in all elements, in every draw"
                       : "the reference gives NaN or infinity on the problem's own values";
}

void OtherDraws::AskForNumbers(const Slot& slot, const Rules& rules, OtherDraw* drawn) {
  Expected& expected = drawn->expected;
  if (!AllFinite(expected.plain) || !AllFinite(expected.high)) {
    drawn->skipped = "the reference itself gives NaN or infinity there";
    return;
  }
  if (expected.high.empty()) {
    drawn->skipped = "there is no float64 evaluation that would say whether there are numbers";
    return;
  }
  expected.left_out.assign(slot.out.places.size(), false);
  bool all = true;
  for (std::size_t i = 0; i < expected.plain.size(); ++i) {
    const bool exact = !Fractions(expected.plain[i]);
    expected.left_out[i] = exact;
    all = all && exact;
  }
  if (all) drawn->skipped = "all outputs are of exact types, which hold numbers in any case";
  if (Grown(expected, rules)) drawn->skipped = kGrowsThere;
  expected.high.clear();
  expected.numbers_alone = true;
}

OtherDraw OtherDraws::Draw(Distribution distribution, int form, const Slot& slot, const Rules& rules) {
  OtherDraw drawn = DrawValues(distribution, form, slot);
  if (drawn.skipped.empty()) Expect(slot, rules, &drawn);
  return drawn;
}

OtherDraw OtherDraws::DrawValues(Distribution distribution, int form, const Slot& slot) {
  OtherDraw drawn{distribution, form, {}, {}, "", ""};
  drawn.as_drawn = distribution == Distribution::kGiven && form == kAsDrawn;
  if (OneTerm(distribution, form) && !FactorOf(distribution, form)) {
    drawn.skipped = kTried;
    return drawn;
  }
  reference_.SelectShapeSet(slot.shape_set);
  drawn.leaves = reference_.Draw(SecretSeed());
  try {
    const Transformed made = Make(distribution, form, &drawn);
    drawn.how = drawn.as_drawn ? "as drawn" : made.how;
    drawn.skipped = made.skipped;
  } catch (const std::exception& error) {
    drawn.no_memory = TellsOfMemory(error);
    drawn.skipped = "such values cannot be made: " +
                    (reference_.HeldOut(slot.shape_set) ? std::string(kHidden) : Bounded(error.what(), 200));
  }
  reference_.SelectShapeSet(0);
  return drawn;
}

void OtherDraws::Expect(const Slot& slot, const Rules& rules, OtherDraw* drawn) {
  const auto [distribution, form] = std::pair(drawn->distribution, drawn->form);
  Rules here = rules;
  here.one_term = drawn->one_term;
  reference_.SelectShapeSet(slot.shape_set);
  try {
    const bool numbers_alone = distribution == Distribution::kRare && NumbersAlone(form);
    drawn->expected = expecting_.Compute(drawn->leaves, true, !numbers_alone);
    drawn->expected.crowded = drawn->crowded;
    slot.MustFit(drawn->expected.plain);
    if (numbers_alone) {
      AskForNumbers(slot, rules, drawn);
    } else if (MakesNoIntegers(drawn->leaves)) {
      drawn->skipped = "the reference makes integers of numbers there that these cannot hold";
    } else {
      LeaveOutIndices(slot, here, drawn);
      if (distribution == Distribution::kRare && form == kNotNumbers) LeaveOutNaN(&drawn->expected);
      if (distribution == Distribution::kRare && form == kMeeting) LeaveOutRounded(drawn);
      if (drawn->skipped.empty()) {
        if (distribution != Distribution::kGiven) expecting_.AddErrors(drawn->leaves, &drawn->expected);
        drawn->skipped = Unusable(*drawn, here);
      }
      const bool masks = (distribution == Distribution::kRare && IsFixed(form)) ||
                         (distribution == Distribution::kIntegers && IsOfFew(form));
      if (drawn->skipped.empty() && masks && ClosesRows(drawn->leaves)) {
        if (distribution == Distribution::kRare) closes_rows_ = form;
        drawn->skipped = "a mask lets nothing through in whole rows there";
      }
    }
  } catch (const std::exception& error) {
    if (AssertFailed(ops_, error)) throw;
    drawn->no_memory = TellsOfMemory(error);
    drawn->skipped = "the reference refuses such inputs: " +
                     (reference_.HeldOut(slot.shape_set) ? std::string(kHidden) : Bounded(error.what(), 200));
  }
  reference_.SelectShapeSet(0);
}

// Of the draws beyond the check those that show lower precision there must be.
bool OtherDraws::LongSums() const {
  constexpr double kLong = 4096;
  return problem_.reduction >= kLong;
}

void OtherDraws::Keep(const OtherDraw& drawn, const Slot& slot) {
  kept_.push_back({drawn.distribution, drawn.form});
  // What another shape set has room for says nothing of the timed one.
  Evaluations& had = had_[kept_.back()];
  had.high = drawn.expected.had_high;
  had.nudged = slot.shape_set == 0 && !drawn.expected.nudged.empty();
}

void OtherDraws::KeepGiven(int form) {
  kept_.push_back({Distribution::kGiven, form});
  ++kept_given_;
}

bool OtherDraws::Lacks(const OtherDraw& drawn) const {
  if (drawn.no_memory) return true;
  if (!drawn.expected.no_room) return false;
  const auto had = had_.find({drawn.distribution, drawn.form});
  // (The problem's own values are not nudged in every draw of the check.)
  const Evaluations then = had != had_.end() ? had->second : Evaluations{expecting_.has_high(), false};
  return (then.high && !drawn.expected.had_high) || (then.nudged && drawn.expected.nudged.empty());
}

std::size_t OtherDraws::LeastAgain() const { return LongSums() ? 1 + std::max<std::size_t>(kept_given_, 1) : 1; }

std::optional<std::pair<Distribution, int>> OtherDraws::TakeKept() {
  if (kept_.empty()) return std::nullopt;
  std::size_t next = secret_.Below(kept_.size());
  if (LongSums()) {
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      if (kept_[i].first == Distribution::kGiven) next = i;
    }
  }
  std::swap(kept_[next], kept_.back());
  const std::pair<Distribution, int> taken = kept_.back();
  kept_.pop_back();
  return taken;
}

// Among equal keys any index is right, and these values make some: zeros, or probabilities that are all zero. Shifted
// ones make differences that are those of rounding, of one sign for a whole column, which no nudge of inputs shows. Of
// such positions their keys are compared; of counts, and of positions that something was made of, nothing is said.
void OtherDraws::LeaveOutIndices(const Slot& slot, const Rules& rules, OtherDraw* drawn) {
  if (drawn->distribution == Distribution::kGiven) return;
  Expected& expected = drawn->expected;
  std::vector<bool> left_out(slot.out.places.size(), false);
  for (std::size_t i = 0; i < left_out.size(); ++i) {
    const wire::DType& type = slot.out.places[i].type;
    left_out[i] = type.kind == wire::DTypeKind::kInt && type.bits >= 32 &&
                  problem_.ExactnessOf(i) != Exactness::kExact && !Parted(i, *drawn);
    if (!left_out[i]) continue;
    expected.by_keys.resize(left_out.size());
    expected.by_keys[i] = KeysSaySomething(i, slot.shape_set, *drawn, rules);
    left_out[i] = !expected.by_keys[i];
  }
  if (std::all_of(left_out.begin(), left_out.end(), [](bool out) { return out; })) {
    drawn->skipped =
        "the reference gives indices or counts, and these values make ties, or differences of rounding alone";
  }
  expected.left_out = std::move(left_out);
}

// What is equal at first is the larger or the smaller by rounding, once arithmetic has a part in it.
void OtherDraws::LeaveOutRounded(OtherDraw* drawn) {
  std::vector<bool>& left_out = drawn->expected.left_out;
  left_out.resize(drawn->expected.plain.size(), false);
  for (std::size_t i = 0; i < left_out.size(); ++i) {
    left_out[i] = left_out[i] || problem_.ExactnessOf(i) != Exactness::kExact;
  }
  if (drawn->skipped.empty() && std::all_of(left_out.begin(), left_out.end(), [](bool out) { return out; })) {
    drawn->skipped = "rounding has a part in what is compared";
  }
}

std::optional<double> OtherDraws::KeysSaySomething(std::size_t output, std::size_t shape_set, const OtherDraw& drawn,
                                                   const Rules& rules) {
  // Shifted ones ask how terms that cancel are put together, of a choice as of a number: too much of who need not say
  // how far apart two keys are.
  if (drawn.distribution == Distribution::kShifted && problem_.ExactnessOf(output) == Exactness::kRounded) {
    return std::nullopt;
  }
  try {
    auto known = given_keys_.find(shape_set);
    if (known == given_keys_.end()) {
      known = given_keys_.emplace(shape_set, KeySizes(reference_, reference_.Draw(SecretSeed()))).first;
    }
    const std::vector<std::optional<double>>& sizes = known->second;
    if (output >= sizes.size() || !sizes[output]) return std::nullopt;
    const std::optional<Comparison> own = CompareByKeys(problem_, drawn.leaves, output, drawn.expected.plain[output],
                                                        rules.OfKeys(*sizes[output]), &secret_);
    const bool says = own && own->ok && !own->undecided && kNoiseFactor * own->noise.rms <= kMostNoise &&
                      (reduced_ <= 0 || reduced_ * own->noise.condition <= kMostNoise / 2);
    return says ? sizes[output] : std::nullopt;
  } catch (const std::exception& error) {
    if (AssertFailed(ops_, error)) throw;
    return std::nullopt;  // no memory to look
  }
}

// Whether positions that are chosen among the inputs' own values, or counts, are as certain there as where the problem
// draws them: a factor for all, or for a few, makes no values equal that were not.
bool OtherDraws::Parted(std::size_t output, const OtherDraw& drawn) {
  if (drawn.distribution != Distribution::kScaled && drawn.distribution != Distribution::kOutliers) return false;
  if (problem_.exactness.empty()) return false;
  if (problem_.ExactnessOf(output) != Exactness::kChosen) return !problem_.chooses;
  for (const Reached::Order order : {Reached::kFirst, Reached::kLast}) {  // what a clamp made equal
    const Choosing choosing(order);
    const auto call = reference_.Prepare(drawn.leaves, Mode::kEager);
    call->Run();
    if (!choosing.had_choice()) return true;
    const std::vector<at::Tensor> outputs = call->Outputs();
    if (output >= outputs.size() || !outputs[output].equal(drawn.expected.plain[output])) return false;
  }
  return true;
}

// What a processor makes of a number that an integer cannot hold is its own affair.
bool OtherDraws::MakesNoIntegers(const std::vector<Leaf>& leaves) {
  const auto overflows = [&](const std::vector<Leaf>& some) {
    return Overflows([&] { reference_.Prepare(some, Mode::kEager)->Run(); });
  };
  if (!overflows(leaves)) return false;
  if (!given_overflows_) given_overflows_ = overflows(reference_.Draw(SecretSeed()));
  return !*given_overflows_;
}

// A distribution makes keys equal that the problem's own values do not (zeros), any number of them, and a program may
// go on to work with the places that it puts them in.
bool OtherDraws::EqualKeysDecide(const Expected& expected, const std::vector<Leaf>& leaves, const Rules& rules) {
  if (!problem_.chooses && !problem_.exactness.empty()) return false;
  if (!Decide(expected, leaves, rules)) return false;
  if (!given_decide_) {
    const std::vector<Leaf> given = reference_.Draw(SecretSeed());
    given_decide_ = Decide(expecting_.Compute(given, true, true), given, rules);
  }
  return !*given_decide_;
}

bool OtherDraws::Decide(const Expected& expected, const std::vector<Leaf>& leaves, const Rules& rules) {
  for (const Reached::Order order : {Reached::kFirst, Reached::kLast}) {
    const Choosing choosing(order);
    const auto call = reference_.Prepare(leaves, Mode::kEager);
    call->Run();
    if (!choosing.had_choice()) return false;
    const std::vector<at::Tensor> outputs = call->Outputs();
    for (std::size_t i = 0; i < expected.plain.size() && i < outputs.size(); ++i) {
      if (!Fractions(expected.plain[i]) || outputs[i].sizes() != expected.plain[i].sizes()) continue;
      const double jumps = i < expected.jumps.size() ? expected.jumps[i] : 0;
      if (!CompareTensors(Measured(problem_, i, outputs[i], expected, {}, jumps), rules.Of(i)).ok) return true;
    }
  }
  return false;
}

// What a program gives for a row that is masked as a whole depends on the number that it writes for infinity.
bool OtherDraws::ClosesRows(const std::vector<Leaf>& leaves) {
  const std::vector<at::Tensor> closed = WithClosedMasks(reference_, leaves);
  return !closed.empty() && !AllFinite(closed);
}

std::string OtherDraws::Unusable(const OtherDraw& drawn, const Rules& rules) {
  const Expected& expected = drawn.expected;
  if (given_finite_ && !AllFinite(Asked(expected, expected.plain))) {
    return "the reference itself gives NaN or infinity there";
  }
  if (drawn.distribution == Distribution::kRare && !AllFinite(Asked(expected, expected.high))) {
    return "the reference in float64 gives NaN or infinity there";
  }
  if (drawn.distribution == Distribution::kRare && Grown(expected, rules)) return kGrowsThere;
  const bool far = drawn.distribution == Distribution::kRare && IsFar(drawn.form);
  if ((far || Downwards(drawn.distribution, drawn.form)) && NothingLeft(expected)) {
    return "next to nothing is left of an output there";
  }
  if (expected.high.empty()) {
    return drawn.distribution == Distribution::kShifted || drawn.distribution == Distribution::kRare
               ? "there is no float64 evaluation that would say what rounding does to such values"
               : "";
  }
  for (std::size_t i = 0; i < expected.plain.size(); ++i) {
    if (expected.LeftOut(i) || expected.ByKeys(i)) continue;
    const bool exact = !Fractions(expected.plain[i]);
    const Comparison own = CompareTensors(
        Measured(problem_, i, expected.plain[i], expected, {}, i < expected.jumps.size() ? expected.jumps[i] : 0),
        rules.Of(i));
    if (own.undecided) return "rounding decides the reference's own result there";
    if (exact) continue;
    char text[160];
    if (kNoiseFactor * own.noise.rms > kMostNoise) {
      std::snprintf(text, sizeof text, "rounding moves the reference's own result by %.2g of the output's rms",
                    own.noise.rms);
      return text;
    }
    if (reduced_ > 0 && reduced_ * own.noise.condition > kMostNoise / 2) {
      std::snprintf(text, sizeof text, "precision may be reduced, and the result follows such errors %.2g-fold",
                    own.noise.condition);
      return text;
    }
    // A result that vanishes in its type but for an element, say: the others' errors are then its own.
    if (!own.ok) return "the reference as written is not what it is in float64, by the rule for candidates";
  }
  return EqualKeysDecide(expected, drawn.leaves, rules)
             ? "equal keys decide the result there, and any order of them is right"
             : "";
}

}  // namespace grove::judge
