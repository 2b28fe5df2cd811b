#include "worker/judge/check.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "worker/judge/choices.h"
#include "worker/judge/conversions.h"
#include "worker/judge/shaken.h"
#include "worker/judge/tensor_type.h"

namespace grove::judge {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

double Since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// NaN may be what was there before: then the kernel did not write it.
std::string Unwritten(const at::Tensor& got) {
  if (!got.is_floating_point()) return "";
  const std::int64_t count = at::isnan(got).sum().item<std::int64_t>();
  return " (" + std::to_string(count) +
         " elements are NaN; outputs are filled with NaN before the kernel runs, so these "
         "may never have been written)";
}

bool HasExact(const Slot& slot) {
  return std::any_of(slot.out.places.begin(), slot.out.places.end(),
                     [](const Place& place) { return place.type.exact(); });
}

// Of an evaluation's whole time: further distributions are not begun beyond this.
constexpr double kForeignShare = 0.15;
// No distribution where the reference's own rounding error, or what the rule would allow, is more than this of the
// output: what is compared there is noise.
constexpr double kMostNoise = 0.5;

// Whether elements can come out as the candidate has them.
constexpr double kMostSecondsToExcuse = 4;

constexpr char kHidden[] = "[a shape that is held out]";

at::Tensor At(const std::vector<at::Tensor>& tensors, std::size_t i) {
  return i < tensors.size() ? tensors[i] : at::Tensor();
}

// What the other rules say is of what was given, and not of what is right in the place of some of it.
void Excused(const Comparison& given, Comparison* others) {
  others->excused = others->ok;
  others->passes_1e4 = given.passes_1e4;
  others->passes_1e2 = given.passes_1e2;
  others->max_abs_error = given.max_abs_error;
  others->max_rel_error = given.max_rel_error;
}

const char* Word(Distribution distribution) {
  switch (distribution) {
    case Distribution::kScaled:
      return "scaled";
    case Distribution::kShifted:
      return "shifted";
    case Distribution::kSparse:
      return "sparse";
    case Distribution::kOutliers:
      return "outlier";
    default:
      return "given";
  }
}

}  // namespace

Check::Check(LoadedProblem& problem, DeviceOps& ops, const EvaluationSettings& settings, bool high_fits)
    : problem_(problem),
      reference_(*problem.reference),
      ops_(ops),
      settings_(settings),
      rule_(settings.rule.value_or(problem.reference->DefaultRule())),
      expecting_(problem, ops, high_fits),
      paths_(problem.reference->OutputPaths()),
      secret_(Random::Secret()) {
  rule_.reduced = rule_.mode == RuleMode::kScaled ? settings.reduced : 0;
  verify_rule_ = rule_;
  outcomes_.reserve(8);
  outcomes_.push_back({});
  current_ = &outcomes_.front();
}

Rule Check::RuleOf(std::size_t output) const {
  Rule rule = verify_rule_;
  // Not where elements are left out: their part in sums is what is looked for.
  if (current_->distribution == Distribution::kScaled && output < given_rms_.size()) rule.unit = given_rms_[output];
  return rule;
}

Rule Check::ForeignRule() const {
  Rule rule;
  rule.reduced = settings_.reduced;
  rule.cap = kMostNoise;
  rule.any_order = true;
  return rule;
}

ComparedTensors Check::Measured(std::size_t i, const at::Tensor& got, const Expected& expected,
                                const ReferenceNoise& noise, double jumps) const {
  const Expected::Turned turned = i < expected.turned.size() ? expected.turned[i] : Expected::Turned();
  ComparedTensors compared{got, expected.plain[i], {}, {}, problem_.ReductionOf(i), {}, {}, 0, {}, 0};
  const Exactness exactness = Fractions(expected.plain[i]) ? Exactness::kRounded : problem_.ExactnessOf(i);
  if (exactness == Exactness::kExact) return compared;  // no nudge says anything of it
  compared.high = At(expected.high, i);
  compared.turned = turned.elements;
  compared.turns = turned.turns;
  if (exactness == Exactness::kChosen && (turned.turns > 0 || !At(expected.nudged, i).defined())) {
    if (turned.turns > 0) compared.nudged = compared.wide = compared.high;  // rounding turns nothing over
    compared.noise.ties = noise.ties;
    return compared;
  }
  compared.nudged = At(expected.nudged, i);
  compared.wide = At(expected.wide, i);
  compared.noise = noise;
  compared.jumps = problem_.ExactnessOf(i) == Exactness::kExact ? 0 : jumps;
  return compared;
}

// Expected::jumps; of exact types, every draw of which is nudged, the mean of all draws.
std::vector<double> Check::MeanJumps(const Expected& expected, bool given) {
  std::vector<double> jumps = expected.jumps;
  jumps.resize(expected.plain.size(), 0);
  if (!given || expected.nudged.empty()) return jumps;
  drawn_jumps_.resize(jumps.size(), 0);
  ++draws_;
  for (std::size_t i = 0; i < jumps.size(); ++i) {
    drawn_jumps_[i] += jumps[i];
    if (!Fractions(expected.plain[i])) jumps[i] = drawn_jumps_[i] / draws_;
  }
  return jumps;
}

Expected Check::Compute(const std::vector<Leaf>& leaves, bool high, bool nudge) {
  const Choosing choosing(chosen_);
  return expecting_.Compute(leaves, high, nudge);
}

Comparison Check::CompareOrExcuse(std::size_t i, ComparedTensors tensors, const Rule& rule,
                                  const std::vector<Leaf>& leaves, std::size_t shape_set, Turns* turns) {
  constexpr std::int64_t kFew = 16, kMostElements = std::int64_t{1} << 26;
  constexpr double kMostSeconds = 1;  // of one evaluation in float64
  Comparison compared = CompareTensors(tensors, rule);
  const at::Tensor& reference = tensors.reference;
  const bool jumps = compared.ok && compared.jumps > 0 && !Fractions(reference);  // they are counted
  const std::int64_t differ = compared.mismatched;
  if (((compared.mismatched > 0 && (!compared.ok || compared.undecided)) || jumps) &&
      (rule.mode == RuleMode::kScaled || !Fractions(reference))) {
    compared = Excuse(i, tensors, std::move(compared), rule, leaves, shape_set);
    // (Where another choice was as good, those that are left are not known one by one.)
    if (jumps && compared.ok && compared.mismatched == differ) {
      AskForJumps(i, tensors, rule, leaves, shape_set, &compared);
    }
    if (!Fractions(reference)) return compared;
  }
  if (compared.ok || compared.undecided || rule.mode != RuleMode::kScaled || !tensors.nudged.defined() ||
      !Fractions(reference) || reference.is_complex() || reference.numel() > kMostElements) {
    return compared;
  }
  if (problem_.continuous || problem_.ExactnessOf(i) == Exactness::kExact || problem_.double_seconds > kMostSeconds) {
    return compared;
  }
  // As for the reference's own jumps, no more than a share: outputs of few elements would be nothing else.
  const auto few = std::min(kFew, static_cast<std::int64_t>(kMostOwnJumps * static_cast<double>(reference.numel())));
  if (compared.mismatched > few * kNeighbours) return compared;
  // What one element may be off by where the reference's own errors, which may be such jumps, are not looked at.
  const wire::DType type = wire::FindDType(ShortType(reference.scalar_type())).value();
  const ScaledConstants constants = ConstantsFor(type);
  const double work = WorkError(type, tensors.reduction, rule);
  const double most = kTailFactor * (constants.rounding + work * compared.noise.condition) * compared.rms;
  try {
    const at::Tensor got = tensors.got.reshape({-1}), high = tensors.high.reshape({-1}).to(at::kDouble);
    const at::Tensor allowed = high.abs() * constants.element_slack + most;
    const at::Tensor beyond = (got.to(at::kDouble) - high).abs().gt(allowed);  // of NaN: false
    const auto count = beyond.sum().item<std::int64_t>();
    if (count == 0 || count > few) return compared;
    const at::Tensor positions = beyond.nonzero().reshape({-1});
    reference_.SelectShapeSet(shape_set);
    const at::Tensor reached =
        expecting_.ComesOut(leaves, i, positions, tensors.got, allowed.index_select(0, positions), work, turns);
    reference_.SelectShapeSet(0);
    const at::Tensor excused = positions.masked_select(reached);
    if (excused.numel() == 0) return compared;
    const at::Tensor right = high.index_select(0, excused).to(got.scalar_type());
    tensors.got = got.index_copy(0, excused, right).reshape(reference.sizes());
    Comparison others = CompareTensors(tensors, rule);
    Excused(compared, &others);
    return others;
  } catch (const std::exception&) {  // no memory to look: as it was found
    reference_.SelectShapeSet(0);
    return compared;
  }
}

void Check::AskForJumps(std::size_t i, const ComparedTensors& tensors, const Rule& rule,
                        const std::vector<Leaf>& leaves, std::size_t shape_set, Comparison* compared) {
  constexpr std::int64_t kFew = 16;
  constexpr double kFurther = 64;  // than the work's own rounding, which has its part behind the inputs, too
  constexpr int kEvaluations = 2 * Expecting::kMostNudges;
  if (problem_.continuous || problem_.ExactnessOf(i) != Exactness::kRounded || problem_.double_seconds < 0 ||
      kEvaluations * problem_.double_seconds > kMostSecondsToExcuse || !tensors.nudged.defined()) {
    return;
  }
  // Programs of half types round on their way, where and how often is theirs to choose: much further than this.
  const auto half = [](const at::Tensor& one) {
    return one.defined() && IsHalf(one.scalar_type());
  };
  for (const Leaf& leaf : leaves) {
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
    reference_.SelectShapeSet(shape_set);
    int nudges = 0;
    for (double size : {work, kFurther * work}) {
      Turns turns(kMostSecondsToExcuse);
      reached.logical_or_(expecting_.ComesOut(leaves, i, positions, tensors.got, exact, size, &turns, &nudges));
      if (reached.all().item<bool>()) break;
    }
    if (nudges == kEvaluations && !reached.all().item<bool>()) {
      compared->ok = compared->passes_scaled = compared->excused = false;
      compared->why = "values of an exact type differ that no rounding takes there";
    }
  } catch (const std::exception&) {  // no memory to look: as it was found
  }
  reference_.SelectShapeSet(0);
}

Comparison Check::Excuse(std::size_t i, ComparedTensors tensors, Comparison compared, const Rule& rule,
                         const std::vector<Leaf>& leaves, std::size_t shape_set) {
  constexpr double kMostSeconds = 0.5;  // of one evaluation in float64
  const at::Tensor& reference = tensors.reference;
  const bool fractions = Fractions(reference), passed = compared.ok && !compared.undecided;
  if (reference.is_complex() || problem_.continuous) return compared;
  // Ordering keys anew, and looking at each operation's operands, take longer than the program alone.
  constexpr double kOrdering = 4, kLooking = 8;
  Turns turns(kMostSecondsToExcuse);  // of its own: what comes after needs some, too
  struct Selected {                   // whatever ends it
    Reference& reference;
    ~Selected() { reference.SelectShapeSet(0); }
  } selected{reference_};
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
      const at::Tensor off = chosen ? reached.values.ne(reference)
                                    : (given - right).abs().gt(limit).logical_and((other - right).abs().gt(limit));
      const at::Tensor kept = (right + (given - other)).to(got.scalar_type());
      tensors.got = at::where(reached.elements.logical_and(off), kept, got);
    }
    Comparison others = CompareTensors(tensors, rule);
    Excused(compared, &others);
    compared = std::move(others);
  };
  try {
    reference_.SelectShapeSet(shape_set);
    bool places = false;
    if (!fractions) {
      const at::Tensor chosen = WithEqualChoices(reference_, leaves, i, tensors.got, &places);
      if (chosen.defined()) {
        tensors.got = chosen;
        compared = CompareTensors(tensors, rule);
      }
      if (passes()) return compared;
    }
    const wire::DType type = wire::FindDType(ShortType(reference.scalar_type())).value();
    if (fractions) {
      const ScaledConstants constants = ConstantsFor(type);
      slack = constants.element_slack;
      most = kTailFactor * (constants.rounding + WorkError(type, tensors.reduction, rule)) * compared.rms;
    }
    if (!places && (problem_.chooses || problem_.exactness.empty())) {
      const Reached reached = ReachedByOtherChoices(reference_, leaves, i, tensors.got, most, slack, &turns,
                                                    kOrdering * problem_.reference_seconds);
      if (reached.elements.defined()) without(reached, /*chosen=*/true);
      if (reached.order != Reached::kOther) chosen_ = reached.order;
      if (passes()) return compared;
    }
    // (What passed, and was only counted, is not asked for so much; and where rounding takes as many elsewhere, nothing
    // would be excused.)
    if (passed || static_cast<double>(compared.mismatched) > kMostJumps * static_cast<double>(reference.numel()) ||
        (fractions && !tensors.high.defined()) || !expecting_.has_high() ||
        problem_.ExactnessOf(i) != Exactness::kRounded || problem_.double_seconds > kMostSeconds ||
        !HasWholeNumbers(leaves)) {
      return compared;
    }
    const at::Tensor allowed = fractions ? tensors.high.to(at::kDouble).abs() * slack + most : at::Tensor();
    const Reached reached = ReachedByRounding(reference_, leaves, i, tensors.got, tensors.high, allowed,
                                              tensors.reduction, &secret_, &turns, kLooking * problem_.double_seconds);
    if (reached.elements.defined()) without(reached, /*chosen=*/false);
  } catch (const std::exception&) {  // no memory to look: as it was found
  }
  return compared;
}

bool Check::Verify(const Conversation& conversation, Arena* arena, Slot* slot, const Reply& reply,
                   const Expected& expected, const std::vector<Leaf>& leaves, int trial) {
  ++trials_;
  ++current_->trials;
  const bool given = current_->distribution == Distribution::kGiven;
  const bool held_out = reference_.HeldOut(slot->shape_set), quiet = conversation.quiet();
  slot->MustFit(expected.plain);
  // Out of the candidate's reach first: what is compared can no longer change.
  std::vector<at::Tensor> got;
  for (std::size_t i = 0; i < slot->out.places.size(); ++i) {
    at::Tensor copy = at::empty_like(expected.plain[i], at::MemoryFormat::Contiguous);
    const Place& place = slot->out.places[i];
    if (place.bytes > 0) ops_.Copy(copy.data_ptr(), slot->outputs->data() + place.offset, place.bytes);
    got.push_back(copy);
  }
  if (!arena->InputsIntact(slot) || !arena->ParametersIntact(reference_.Parameters())) {
    inputs_modified_ = true;
    first_failing_ = trial;
    throw Verdict{"VERDICT_WRONG", "the candidate wrote to its inputs, which must stay as they are", {}};
  }
  std::vector<json> outputs;
  std::string failure, undecided;  // an output that is surely wrong decides, whatever others may be
  bool excused = false;
  if (settings_.python_candidate) CheckTypes(conversation, reply, expected, held_out, &outputs, &failure);
  if (failure.empty() && !arena->OutputGuardsIntact(slot)) {
    failure = "the candidate wrote outside of its output";
  }
  if (failure.empty()) {
    outputs.clear();
    noise_.resize(got.size());
    jumps_.resize(got.size());
    const std::vector<double> jumps = MeanJumps(expected, given);
    Turns turns_to_excuse(kMostSecondsToExcuse);
    for (std::size_t i = 0; i < got.size(); ++i) {
      ReferenceNoise noise = noise_[i];
      const auto ties = ties_.find({slot->shape_set, i});
      if (given && ties != ties_.end()) noise.ties = ties->second;
      const Rule rule = RuleOf(i);
      ComparedTensors measured = Measured(i, got[i], expected, noise, jumps[i]);
      const Comparison compared =
          failure.empty() ? CompareOrExcuse(i, std::move(measured), rule, leaves, slot->shape_set, &turns_to_excuse)
                          : CompareTensors(measured, rule);
      if (given && !expected.wide.empty()) ties_[{slot->shape_set, i}] = compared.noise.ties;
      jumps_[i] = {compared.jumps_expected, compared.jumps};
      if (compared.undecided && compared.mismatched > 0) {
        if (undecided.empty()) {
          undecided = "rounding decides most of " + Output(i, got.size()) +
                      ": the reference itself gives other values when its inputs move in their last bit, so that "
                      "right and wrong cannot be told apart; `grove problem check` says more";
        }
        if (failure.empty() && slot->LeftUnwritten(i, got[i])) {
          failure = Output(i, got.size()) + " has elements that were never written where the reference gives NaN";
        }
        continue;
      }
      if (compared.noise.known) noise_[i] = compared.noise;
      excused = excused || compared.excused;
      outputs.push_back(Describe(i, expected.plain[i], compared, quiet, held_out));
      if (!rule.leaning && !quiet) current_->error = std::max(current_->error, compared.scaled_error);
      if (given) {
        given_rms_.resize(got.size(), 0);
        given_rms_[i] = std::max(given_rms_[i], compared.rms);
        figures_.also_1e4 = figures_.also_1e4 && compared.passes_1e4;
        figures_.also_1e2 = figures_.also_1e2 && compared.passes_1e2;
      }
      // What leaning values make of rounding, and are allowed, says nothing of precision.
      if (given && !rule.leaning) {
        figures_.also_scaled =
            figures_.also_scaled && compared.passes_scaled && !(compared.scaled_error > compared.scaled_same);
        figures_.worst_allowed = std::max(figures_.worst_allowed, compared.scaled_allowed);
        if (!quiet) figures_.error_found = std::max(figures_.error_found, compared.scaled_error);
        figures_.error_same = std::max(figures_.error_same, compared.scaled_same);
        figures_.condition = std::max(figures_.condition, compared.noise.condition);
        figures_.reference_noise = std::max(figures_.reference_noise, compared.noise.rms);
      }
      if (compared.ok && failure.empty() && slot->LeftUnwritten(i, got[i])) {
        failure = Output(i, got.size()) + " has elements that were never written where the reference gives NaN";
      }
      if (!compared.ok && failure.empty())
        failure = Explain(i, got.size(), got[i], expected.plain[i], compared, trial, quiet, held_out);
    }
  }
  if (failure.empty() && !undecided.empty()) throw Verdict{"VERDICT_UNMEASURABLE", undecided, {}};
  if (!failure.empty()) {
    first_failing_ = trial;
    outputs_ = outputs;
    if (varied_) failure += "; parameters have other values in each evaluation than as they were built";
    if (given && !current_->how.empty()) failure += "; the inputs were " + current_->how;
    if (!given) {
      failure = OnTheseInputs(failure);
    }
    throw Verdict{"VERDICT_WRONG", failure, {}};
  }
  ++trials_passed_;
  ++current_->passed;
  if (given && !verify_rule_.leaning) KeepWorst(outputs);
  return excused;
}

bool Check::VerifyFairly(const Conversation& conversation, Arena* arena, Slot* slot, const Reply& reply,
                         const Expected& expected, const std::vector<Leaf>& leaves, int trial, bool timed) {
  const bool whole = !expected.nudged.empty();
  if (whole && !timed) return Verify(conversation, arena, slot, reply, expected, leaves, trial);
  const std::vector<ReferenceNoise> noise = noise_;
  Expected own;
  if (!whole) {
    const Figures figures = figures_;
    const double error = current_->error;
    const std::vector<json> outputs = outputs_;
    try {
      return Verify(conversation, arena, slot, reply, expected, leaves, trial);
    } catch (const Verdict& verdict) {
      if (verdict.verdict != "VERDICT_WRONG" || inputs_modified_) throw;
      reference_.SelectShapeSet(slot->shape_set);
      own = Compute(leaves, true, true);
      reference_.SelectShapeSet(0);
      if (own.nudged.empty()) throw;
      --trials_;
      --current_->trials;
      current_->error = error;
      first_failing_ = 0;
      figures_ = figures;
      outputs_ = outputs;
    }
  }
  noise_.assign(noise.size(), {});
  try {
    Verify(conversation, arena, slot, reply, whole ? expected : own, leaves, trial);
  } catch (const Verdict& undecided) {
    // Where terms cancel nearly all, one draw in many says nothing; others have.
    if (undecided.verdict != "VERDICT_UNMEASURABLE" || trials_passed_ == 0) throw;
    ++trials_passed_;
    ++current_->passed;
    jumps_.assign(jumps_.size(), {});
  }
  noise_ = noise;
  return true;  // errors that this draw alone allows are no measure for others
}

void Check::KeepWorst(const std::vector<json>& outputs) {
  if (outputs_.empty()) {
    outputs_ = outputs;
    return;
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    auto error = [](const json& o) { return o["scaled_error"].is_number() ? o["scaled_error"].get<double>() : 0.0; };
    if (error(outputs[i]) > error(outputs_[i])) outputs_[i] = outputs[i];
  }
}

void Check::CheckTypes(const Conversation& conversation, const Reply& reply, const Expected& expected, bool held_out,
                       std::vector<json>* outputs, std::string* failure) const {
  if (!reply.outputs.is_array()) throw conversation.Protocol("\"done\" without its outputs");
  const std::string device = ops_.cuda() ? "cuda" : "cpu";
  for (std::size_t i = 0; i < expected.plain.size(); ++i) {
    std::string got = "nothing", where = device;
    if (i < reply.outputs.size()) {
      const json& item = reply.outputs[i];
      auto dtype = item.find("dtype"), shape = item.find("shape"), place = item.find("device");
      if (!item.is_object() || dtype == item.end() || !dtype->is_string() || shape == item.end() ||
          !shape->is_array() || place == item.end() || !place->is_string()) {
        throw conversation.Protocol("an output without dtype, shape and device");
      }
      got = Bounded(dtype->get<std::string>(), 40) + Bounded(shape->dump(), 200);
      where = *place;
    }
    const std::string wanted = TypeText(expected.plain[i]);
    const bool scalar = where == "scalar" && expected.plain[i].dim() == 0;
    const bool fits = got == wanted && (where == device || scalar);
    if (conversation.quiet()) {
      const std::string type = held_out ? ShortType(expected.plain[i].scalar_type()) + kHidden : wanted;
      outputs->push_back({{"index", i}, {"path", Path(i)}, {"expected_type", type}});
      if (failure->empty() && !fits) {
        *failure = Output(i, expected.plain.size()) + " has another type, shape or place than the reference's, " + type;
      }
      continue;
    }
    json description{
        {"index", i}, {"path", Path(i)}, {"expected_type", wanted}, {"elements", expected.plain[i].numel()}};
    if (!fits) {
      const std::string on = where != device && where != "scalar" && !where.empty() ? " on " + where : "";
      description["got_type"] = got + on;
      description["mismatched"] = expected.plain[i].numel();
      if (failure->empty()) {
        *failure = Output(i, expected.plain.size()) + " is " + got + on + ", and the reference's is " + wanted +
                   (on.empty() ? "" : " on " + device);
      }
    }
    outputs->push_back(description);
  }
  if (failure->empty() && reply.outputs.size() > expected.plain.size()) {
    *failure = "the candidate returns " + (conversation.quiet() ? "more" : std::to_string(reply.outputs.size())) +
               " outputs, and the reference " + std::to_string(expected.plain.size());
  }
}

std::string Check::Path(std::size_t i) const { return i < paths_.size() ? paths_[i] : ""; }

std::string Check::Output(std::size_t i, std::size_t count) const {
  return count == 1 ? "the output" : "output " + (Path(i).empty() ? std::to_string(i) : Path(i));
}

json Check::Describe(std::size_t i, const at::Tensor& expected, const Comparison& compared, bool quiet,
                     bool held_out) const {
  // What it writes may be a shape that it was not to tell, and every figure of that tells what it wrote.
  if (quiet) {
    return {{"index", i},
            {"path", Path(i)},
            {"expected_type", held_out ? ShortType(expected.scalar_type()) + kHidden : TypeText(expected)},
            {"elements", 0},
            {"mismatched", 0},
            {"max_abs_error", 0},
            {"max_rel_error", 0},
            {"scaled_error", 0}};
  }
  json output{{"index", i},
              {"path", Path(i)},
              {"expected_type", TypeText(expected)},
              {"elements", compared.elements},
              {"mismatched", compared.mismatched},
              {"max_abs_error", Number(compared.max_abs_error)},
              {"max_rel_error", Number(compared.max_rel_error)},
              {"scaled_error", Number(compared.scaled_error)}};
  if (compared.worst >= 0) {
    output["worst"] = {{"index", Unravel(compared.worst, expected.sizes().vec())},
                       {"expected", Number(compared.expected)},
                       {"got", Number(compared.got)},
                       {"error", Number(compared.error)},
                       {"allowed", Number(compared.allowed)}};
  }
  return output;
}

std::string Check::OnTheseInputs(const std::string& failure) const {
  return std::string("on ") + Word(current_->distribution) + " inputs (" + current_->how + ") " + failure +
         (failure.ends_with('.') ? "" : ".") + " It was right on all " + std::to_string(outcomes_.front().passed) +
         " draws of the problem's own values; --only-given-inputs judges by those alone";
}

std::string Check::Explain(std::size_t i, std::size_t count, const at::Tensor& got, const at::Tensor& expected,
                           const Comparison& compared, int trial, bool quiet, bool held_out) const {
  const std::string in = " is wrong in trial " + std::to_string(trial);
  // How many elements there are, and where the worst stands, would tell the shape; so may what was written.
  if (quiet) {
    return Output(i, count) + " (" + (held_out ? ShortType(expected.scalar_type()) + kHidden : TypeText(expected)) +
           ")" + in + (held_out ? "" : "; no figures are told, for it has run shapes that are held out");
  }
  std::string text = Output(i, count) + " (" + TypeText(expected) + ")" + in + ": " + compared.why + "; " +
                     std::to_string(compared.mismatched) + " of " + std::to_string(compared.elements) + " elements";
  if (compared.worst >= 0) {
    const std::string at = json(Unravel(compared.worst, expected.sizes().vec())).dump();
    char figures[200];
    std::snprintf(figures, sizeof figures, ", worst at %s: expected %.9g, got %.9g", at.c_str(), compared.expected,
                  compared.got);
    text += figures;
    if (std::isnan(compared.got) && compared.mismatched > 0) text += Unwritten(got);
  }
  return text;
}

template <typename Work>
void Check::OnOthers(Distribution distribution, const Work& work) {
  // Also where a verdict ends it.
  struct Given {
    Check* check;
    std::vector<ReferenceNoise> noise = check->noise_;
    std::vector<Jumps> jumps = check->jumps_;
    ~Given() {
      check->verify_rule_ = check->rule_;
      check->outcomes_.front().how.clear();
      check->noise_ = std::move(noise);
      check->jumps_ = std::move(jumps);
      check->current_ = &check->outcomes_.front();
    }
  } given{this};
  if (distribution == Distribution::kGiven) {
    verify_rule_.leaning = true;
  } else {
    verify_rule_ = ForeignRule();
  }
  for (Outcome& outcome : outcomes_) {
    if (outcome.distribution == distribution) current_ = &outcome;
  }
  noise_.assign(noise_.size(), {});
  work();
}

void Check::Run(Conversation* conversation, Arena* arena, std::size_t timed_slots, Random* random,
                const Progress& progress) {
  const std::size_t sets = reference_.ShapeSets();
  const int trials = std::max<int>(settings_.trials, static_cast<int>(sets));
  const bool judged_elsewhere = !settings_.distributions && rule_.mode == RuleMode::kScaled;
  // Whose work it is is asked in one of them; which one, nobody can know.
  const int observed = 1 + static_cast<int>(random->Below(static_cast<std::uint64_t>(trials)));
  // Never the first: what it shows of rounding serves the others.
  const int leaning =
      judged_elsewhere && trials > 1 ? 2 + static_cast<int>(random->Below(static_cast<std::uint64_t>(trials - 1))) : 0;
  // Shapes that are held out come last: until then a candidate may say what is wrong with it.
  std::vector<std::size_t> order;
  for (int i = 0; i < trials; ++i) order.push_back(static_cast<std::size_t>(i) % sets);
  const auto told = [this](std::size_t set) { return !reference_.HeldOut(set); };
  std::stable_partition(order.begin(), order.end(), told);
  std::vector<bool> drawn(sets, false);
  for (int trial = 1; trial <= trials; ++trial) {
    progress("check", "trial " + std::to_string(trial) + " of " + std::to_string(trials));
    const std::size_t set = order[static_cast<std::size_t>(trial) - 1];
    const std::size_t index = set == 0 ? random->Below(timed_slots) : timed_slots + set - 1;
    Slot* slot = &arena->at(index);
    reference_.SelectShapeSet(set);
    slot->leaves.clear();  // the last draw's memory serves the next
    std::vector<Leaf> leaves = reference_.Draw(SecretSeed());
    // A float64 evaluation that is slow is done for a shape's first trial alone: its noise figures serve the others.
    const bool first = !drawn[set];
    drawn[set] = true;
    // Indices that rounding decides are few and other ones in each draw: there every draw says how many.
    Expected expected;
    const bool leans = trial == leaning && Leans(*slot, &leaves, &expected);
    if (!leans) {
      expected = Compute(leaves, first || problem_.double_seconds < 0.5, first || HasExact(*slot));
      slot->MustFit(expected.plain);  // before a candidate runs: it is the problem's fault
    }
    given_finite_ = given_finite_ && AllFinite(expected.plain);
    reference_.SelectShapeSet(0);
    arena->Fill(slot, std::move(leaves));
    arena->Poison(slot);
    MakeRoom();
    ops_.Synchronize();
    if (reference_.HeldOut(slot->shape_set)) conversation->KeepQuiet();
    Reply reply = conversation->Run({index}, "all", settings_.observe && trial == observed);
    if (!reply.work.is_null()) work_ = std::move(reply.work);
    first_claims_.push_back(reply.claims[0]);
    verify_rule_.leaning = leans;
    // What leaning values show of rounding is no measure for others.
    std::vector<ReferenceNoise> noise = noise_;
    VerifyFairly(*conversation, arena, slot, reply, expected, slot->leaves, trial, /*timed=*/leans);
    if (leans) noise_ = std::move(noise);
    if (leans && set == 0) usable_.push_back({Distribution::kGiven, kLeaning});
    verify_rule_ = rule_;
    current_->how.clear();
  }
  std::vector<Distribution> others;
  if (settings_.distributions) {
    others = *settings_.distributions;
  } else if (judged_elsewhere) {
    others = {Distribution::kScaled, Distribution::kShifted, Distribution::kSparse, Distribution::kOutliers};
  }
  for (std::size_t i = others.size(); i > 1; --i) std::swap(others[i - 1], others[random->Below(i)]);
  const auto begin = Clock::now();
  double longest = 0;
  for (Distribution one : others) {
    outcomes_.push_back({});
    outcomes_.back().distribution = one;
    const double spent = Since(begin) - foreign_wall_;  // not the candidate's
    if (spent + longest > kForeignShare * settings_.run_wall) {
      outcomes_.back().skipped = "there was no time: the reference and its evaluation in float64 take long";
      continue;
    }
    progress("check", std::string(Word(one)) + " inputs");
    OnOthers(one, [&] { Try(one, conversation, arena, timed_slots, random); });
    longest = std::max(longest, Since(begin) - foreign_wall_ - spent);
    longest_other_ = longest;
  }
}

// Not where an output is of an exact type: values in which fewer bits differ are equal more often. Without float64 what
// a reference in reduced precision does to them could not be told from what the candidate does.
bool Check::Leans(const Slot& slot, std::vector<Leaf>* leaves, Expected* expected) {
  if (!expecting_.has_high() || settings_.reduced > 0 || HasExact(slot)) return false;
  std::vector<Leaf> moved = *leaves;
  try {
    const Transformed made = Transform(Distribution::kGiven, kLeaning, problem_.reduction, &secret_, &moved);
    if (!made.skipped.empty()) return false;
    Expected there = Compute(moved, problem_.double_seconds < 0.5);
    slot.MustFit(there.plain);
    // Values that nearly leave what the reference is defined for are of no use beyond it.
    if (given_finite_ && !AllFinite(there.plain)) return false;
    *expected = std::move(there);
    *leaves = std::move(moved);
    current_->how = made.how;
    return true;
  } catch (const std::exception& error) {
    if (ops_.cuda() && std::string(error.what()).find("device-side assert") != std::string::npos) throw;
    return false;  // the reference refuses them
  }
}

// Lower precision averages out on the problem's values, so that of the draws beyond the check the leaning one must be.
bool Check::LongSums() const {
  constexpr double kLong = 4096;
  return problem_.reduction >= kLong;
}

std::size_t Check::LeastAgain() const { return LongSums() ? 2 : 1; }

void Check::MakeRoom() {
  if (problem_.bytes <= kLargeBytes) return;
  // Half of the device is what a candidate may hold by default.
  if (settings_.device_memory <= 0 || static_cast<double>(ops_.free_bytes()) < settings_.device_memory) {
    ops_.ReleaseCache();
  }
}

Check::Elsewhere Check::DrawElsewhere(Distribution distribution, int form, std::size_t set, Slot* slot) {
  Elsewhere drawn{distribution, {}, {}, "", ""};
  noise_.assign(noise_.size(), {});
  reference_.SelectShapeSet(set);
  drawn.leaves = reference_.Draw(SecretSeed());
  try {
    const Transformed made = Transform(distribution, form, problem_.reduction, &secret_, &drawn.leaves);
    drawn.how = made.how;
    drawn.skipped = made.skipped;
  } catch (const std::exception& error) {
    drawn.skipped =
        "such values cannot be made: " + (reference_.HeldOut(set) ? std::string(kHidden) : Bounded(error.what(), 200));
  }
  // Among equal keys any index is right, and these values make some: zeros, or probabilities that are all zero.
  // Shifted ones make differences that are those of rounding, of one sign for a whole column, which no nudge of
  // inputs shows.
  if (drawn.skipped.empty() && distribution != Distribution::kGiven && Indices(*slot)) {
    drawn.skipped =
        "the reference gives indices or counts, and these values make ties, or differences of rounding alone";
  }
  if (drawn.skipped.empty()) {
    try {
      drawn.expected = Compute(drawn.leaves, true, true);
      slot->MustFit(drawn.expected.plain);
      drawn.skipped = MakesNoIntegers(drawn.leaves)
                          ? "the reference makes integers of numbers there that these cannot hold"
                          : Unusable(drawn.expected, drawn.leaves);
    } catch (const std::exception& error) {
      if (ops_.cuda() && std::string(error.what()).find("device-side assert") != std::string::npos) throw;
      drawn.skipped = "the reference refuses such inputs: " +
                      (reference_.HeldOut(set) ? std::string(kHidden) : Bounded(error.what(), 200));
    }
  }
  reference_.SelectShapeSet(0);
  return drawn;
}

void Check::Try(Distribution distribution, Conversation* conversation, Arena* arena, std::size_t timed_slots,
                Random* random) {
  const std::size_t set = random->Below(reference_.ShapeSets());
  const std::size_t index = set == 0 ? random->Below(timed_slots) : timed_slots + set - 1;
  Slot* slot = &arena->at(index);
  for (int form = 0; form < Forms(distribution); ++form) {
    slot->leaves.clear();
    Elsewhere drawn = DrawElsewhere(distribution, form, set, slot);
    if (!drawn.skipped.empty()) {
      if (current_->trials == 0 && (current_->skipped.empty() || drawn.skipped != "tried already")) {
        current_->skipped = drawn.skipped;
      }
      continue;
    }
    current_->skipped.clear();
    current_->how = drawn.how;
    arena->Fill(slot, std::move(drawn.leaves));
    arena->Poison(slot);
    MakeRoom();
    ops_.Synchronize();
    if (reference_.HeldOut(slot->shape_set)) conversation->KeepQuiet();
    const Reply reply = RunThere(conversation, index);
    foreign_wall_ += reply.wall;
    Verify(*conversation, arena, slot, reply, drawn.expected, slot->leaves, trials_ + 1);
    if (set == 0) usable_.push_back({distribution, form});
    // Small values find what large ones hide (a constant that is added), and one way of making values large is enough.
    if (distribution == Distribution::kScaled) form = std::max(form, Forms(distribution) - 2);
  }
}

Reply Check::RunThere(Conversation* conversation, std::size_t index) {
  try {
    return conversation->Run({index}, "all");
  } catch (Verdict& crashed) {
    if (crashed.verdict == "VERDICT_CRASHED") crashed.reason = OnTheseInputs(crashed.reason);
    throw;
  }
}

std::optional<Check::Elsewhere> Check::DrawAgain(Slot* slot) {
  constexpr double kMostOfWall = 0.03;  // where one takes longer, there is none
  if (longest_other_ > kMostOfWall * settings_.run_wall) return std::nullopt;
  while (!usable_.empty()) {
    std::size_t next = secret_.Below(usable_.size());
    if (LongSums()) {
      for (std::size_t i = 0; i < usable_.size(); ++i) {
        if (usable_[i].first == Distribution::kGiven) next = i;
      }
    }
    std::swap(usable_[next], usable_.back());
    const auto [distribution, form] = usable_.back();
    usable_.pop_back();
    const double seconds = problem_.double_seconds;
    std::optional<Elsewhere> drawn;
    OnOthers(distribution, [&] { drawn = DrawElsewhere(distribution, form, 0, slot); });
    // Slots and references hold memory now, for want of which the check's evaluations do not end.
    problem_.double_seconds = seconds;
    if (drawn->skipped.empty()) return drawn;
  }
  return std::nullopt;
}

void Check::VerifyAgain(const Conversation& conversation, Arena* arena, Slot* slot, const Reply& reply,
                        const Elsewhere& drawn) {
  OnOthers(drawn.distribution, [&] {
    current_->how = drawn.how + ", between timed runs";
    Verify(conversation, arena, slot, reply, drawn.expected, drawn.leaves, trials_ + 1);
  });
}

// Positions or counts with which arithmetic has to do.
bool Check::Indices(const Slot& slot) const {
  for (std::size_t i = 0; i < slot.out.places.size(); ++i) {
    const wire::DType& type = slot.out.places[i].type;
    if (type.kind == wire::DTypeKind::kInt && type.bits >= 32 && problem_.ExactnessOf(i) != Exactness::kExact) {
      return true;
    }
  }
  return false;
}

// What a processor makes of a number that an integer cannot hold is its own affair.
bool Check::MakesNoIntegers(const std::vector<Leaf>& leaves) {
  const auto overflows = [&](const std::vector<Leaf>& some) {
    return Overflows([&] { reference_.Prepare(some, Mode::kEager)->Run(); });
  };
  if (!overflows(leaves)) return false;
  if (!given_overflows_) given_overflows_ = overflows(reference_.Draw(SecretSeed()));
  return !*given_overflows_;
}

// A distribution makes keys equal that the problem's own values do not (zeros), any number of them, and a program may
// go on to work with the places that it puts them in.
bool Check::EqualKeysDecide(const Expected& expected, const std::vector<Leaf>& leaves) {
  if (!problem_.chooses && !problem_.exactness.empty()) return false;
  if (!Decide(expected, leaves)) return false;
  if (!given_decide_) {
    const std::vector<Leaf> given = reference_.Draw(SecretSeed());
    given_decide_ = Decide(Compute(given, true, true), given);
  }
  return !*given_decide_;
}

bool Check::Decide(const Expected& expected, const std::vector<Leaf>& leaves) {
  for (const Reached::Order order : {Reached::kFirst, Reached::kLast}) {
    const Choosing choosing(order);
    const auto call = reference_.Prepare(leaves, Mode::kEager);
    call->Run();
    if (!choosing.had_choice()) return false;
    const std::vector<at::Tensor> outputs = call->Outputs();
    for (std::size_t i = 0; i < expected.plain.size() && i < outputs.size(); ++i) {
      if (!Fractions(expected.plain[i]) || outputs[i].sizes() != expected.plain[i].sizes()) continue;
      const double jumps = i < expected.jumps.size() ? expected.jumps[i] : 0;
      if (!CompareTensors(Measured(i, outputs[i], expected, {}, jumps), RuleOf(i)).ok) return true;
    }
  }
  return false;
}

std::string Check::Unusable(const Expected& expected, const std::vector<Leaf>& leaves) {
  if (given_finite_ && !AllFinite(expected.plain)) return "the reference itself gives NaN or infinity there";
  if (expected.high.empty()) {
    return current_->distribution == Distribution::kShifted
               ? "there is no float64 evaluation that would say what rounding does to such values"
               : "";
  }
  for (std::size_t i = 0; i < expected.plain.size(); ++i) {
    const bool exact = !Fractions(expected.plain[i]);
    const Comparison own = CompareTensors(
        Measured(i, expected.plain[i], expected, {}, i < expected.jumps.size() ? expected.jumps[i] : 0), RuleOf(i));
    if (own.undecided) return "rounding decides the reference's own result there";
    if (exact) continue;
    char text[160];
    if (kNoiseFactor * own.noise.rms > kMostNoise) {
      std::snprintf(text, sizeof text, "rounding moves the reference's own result by %.2g of the output's rms",
                    own.noise.rms);
      return text;
    }
    if (settings_.reduced > 0 && settings_.reduced * own.noise.condition > kMostNoise / 2) {
      std::snprintf(text, sizeof text, "precision may be reduced, and the result follows such errors %.2g-fold",
                    own.noise.condition);
      return text;
    }
    // A result that vanishes in its type but for an element, say: the others' errors are then its own.
    if (!own.ok) return "the reference as written is not what it is in float64, by the rule for candidates";
  }
  return EqualKeysDecide(expected, leaves) ? "equal keys decide the result there, and any order of them is right" : "";
}

std::string Check::RuleText() const {
  char text[400];
  if (rule_.mode == RuleMode::kAbsoluteRelative) {
    std::snprintf(text, sizeof text, "|got - expected| <= %g + %g * |expected|, integers and bool exact", rule_.atol,
                  rule_.rtol);
  } else {
    std::snprintf(text, sizeof text,
                  "scaled: rms error at most %.3g of the output's rms, no element beyond %g times that plus its slack, "
                  "against %s; integers and bool exact",
                  figures_.worst_allowed, kTailFactor,
                  expecting_.has_high() ? "the reference in float64" : "the reference as written");
  }
  return text;
}

std::string Check::Precision() const {
  if (!(figures_.error_found > figures_.error_same)) {
    return figures_.reference_noise > 1e-4 && figures_.error_same >= kNoiseFactor * figures_.reference_noise
               ? "as the reference, which itself works in reduced precision"
               : "as the reference";
  }
  // Rounding both factors of a product to 11 bits is off by 4e-4 of it, to 8 bits by 3e-3; three times as much is
  // ascribed to the same.
  const double error = figures_.error_found / figures_.condition;
  if (error <= 3e-6) return "reduced (single precision or a rough approximation inside)";
  if (error <= 1.2e-3) return "reduced (TF32 or half precision inside)";
  if (error <= 1e-2) return "reduced (bfloat16 or coarser inside)";
  return "far from the reference";
}

json Check::Report() const {
  json report{{"trials", trials_}, {"trials_passed", trials_passed_}, {"rule", RuleText()}, {"outputs", outputs_}};
  json tolerance{
      {"mode", rule_.mode == RuleMode::kScaled ? "TOLERANCE_MODE_SCALED" : "TOLERANCE_MODE_ABSOLUTE_RELATIVE"}};
  if (rule_.mode == RuleMode::kAbsoluteRelative) {
    tolerance["atol"] = rule_.atol;
    tolerance["rtol"] = rule_.rtol;
  }
  report["tolerance"] = tolerance;
  if (first_failing_ > 0) report["first_failing_trial"] = first_failing_;
  if (inputs_modified_) report["inputs_modified"] = true;
  json also = json::array();
  if (!inputs_modified_ && trials_ > 0 && !outputs_.empty() && !outputs_[0].contains("got_type")) {
    if (figures_.also_1e4) also.push_back("1e-4");
    if (figures_.also_1e2) also.push_back("1e-2");
    if (figures_.also_scaled) also.push_back("scaled");
  }
  report["also_passes"] = also;
  json distributions = json::array();
  for (const Outcome& outcome : outcomes_) {
    json item{{"distribution", EnumName(outcome.distribution)}, {"trials", outcome.trials}, {"passed", outcome.passed}};
    if (!outcome.skipped.empty()) item["skipped"] = outcome.skipped;
    if (outcome.trials > 0) item["scaled_error"] = Number(outcome.error);
    distributions.push_back(item);
  }
  report["distributions"] = distributions;
  if (outcomes_.front().passed > 0) {
    report["error_found"] = Number(figures_.error_found);
    report["error_same_precision"] = Number(figures_.error_same);
    report["precision"] = Precision();
  }
  return report;
}

}  // namespace grove::judge
