#include "worker/judge/check.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <set>
#include <utility>

#include "worker/judge/clock.h"
#include "worker/judge/figures.h"
#include "worker/judge/fills.h"
#include "worker/judge/lowered.h"
#include "worker/judge/set.h"
#include "worker/judge/tensor_type.h"

namespace grove::judge {
namespace {

using nlohmann::json;
// Of an evaluation's whole time: further distributions are not begun beyond this, counted in what their evaluations
// take at best, or beyond the second by the clock. On a busy machine the clock alone would leave out what shows a
// cheat.
constexpr double kForeignShare = 0.15, kForeignMost = 0.3;
constexpr double kForeignDraws = 2;  // of a distribution, each with an evaluation, and two in float64

// Hundreds of timed draws hold some whose values an honest program of another kind bears worse than the reference does,
// in ways that no nudge of the inputs shows (the inverse of a matrix near rank one, by cofactors). One in kSeldom, and
// one more, may be off by kBeyond times as much as any other; no time is gained in so few calls.
constexpr std::size_t kSeldom = 100;
constexpr double kBeyond = 8;

// Seconds of an evaluation in float64: the draw that is looked at for marks of lower precision has one up to this.
constexpr double kMostForMarks = 2;

Verdict NoRoomBetweenRuns() {
  return {
      "VERDICT_UNMEASURABLE",
      "outputs between timed runs cannot be checked: there is no memory any more for what the reference gives there",
      {}};
}

}  // namespace

Check::Check(LoadedProblem& problem, DeviceOps& ops, const EvaluationSettings& settings, bool high_fits)
    : problem_(problem),
      reference_(*problem.reference),
      ops_(ops),
      settings_(settings),
      rule_(settings.rule.value_or(problem.reference->DefaultRule())),
      expecting_(problem, ops, high_fits),
      excuses_(problem, expecting_),
      others_(problem, ops, expecting_, settings.reduced),
      words_(problem.reference->OutputPaths()) {
  rule_.reduced = rule_.mode == RuleMode::kScaled ? settings.reduced : 0;
  rules_.rule = rule_;
  findings_.outcomes.reserve(8);
  findings_.outcomes.push_back({});
  current_ = &findings_.outcomes.front();
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

std::vector<at::Tensor> Check::Take(const Slot& slot, const Expected& expected) {
  slot.MustFit(expected.plain);
  return Take(slot);
}

std::vector<at::Tensor> Check::Take(const Slot& slot) {
  std::vector<at::Tensor> got;
  for (std::size_t i = 0; i < slot.out.places.size(); ++i) {
    const Place& place = slot.out.places[i];
    got.push_back(
        at::empty(place.shape, at::device(ops_.cuda() ? at::kCUDA : at::kCPU).dtype(TorchType(place.type.name))));
    if (place.bytes > 0) ops_.Copy(got[i].data_ptr(), slot.Output(i), place.bytes);
  }
  return got;
}

bool Check::Verify(const Conversation& conversation, Arena* arena, Slot* slot, std::vector<at::Tensor> got,
                   const Reply& reply, const Expected& expected, const std::vector<Leaf>& leaves, int trial) {
  ++findings_.trials;
  ++current_->trials;
  const bool given = current_->distribution == Distribution::kGiven;
  const Secrecy secret{conversation.quiet(), reference_.HeldOut(slot->shape_set)};
  for (std::size_t i = 0; expected.numbers_alone && i < got.size(); ++i) {
    if (Fractions(got[i])) got[i] = at::where(at::isfinite(got[i]), expected.plain[i], got[i]);
  }
  if (!arena->InputsIntact(slot) || !arena->ParametersIntact(reference_.Parameters())) {
    findings_.inputs_modified = true;
    findings_.first_failing = trial;
    throw Verdict{"VERDICT_WRONG", "the candidate wrote to its inputs, which must stay as they are", {}};
  }
  std::vector<json> outputs;
  std::string failure, undecided;  // an output that is surely wrong decides, whatever others may be
  bool excused = false;
  if (settings_.python_candidate) {
    words_.CheckTypes(conversation, reply, expected.plain, ops_.cuda() ? "cuda" : "cpu", secret, &outputs, &failure);
  }
  if (failure.empty() && !arena->OutputGuardsIntact(slot)) {
    failure = "the candidate wrote outside of its output";
  }
  if (failure.empty()) {
    outputs.clear();
    noise_.resize(got.size());
    jumps_.resize(got.size());
    const std::vector<double> jumps = MeanJumps(expected, given);
    Turns turns_to_excuse(Excuses::kMostSeconds);
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (expected.LeftOut(i)) continue;
      ReferenceNoise noise = noise_[i];
      const auto ties = ties_.find({slot->shape_set, i});
      if (given && ties != ties_.end()) noise.ties = ties->second;
      const std::optional<double> keys = expected.ByKeys(i);
      const Rule rule = keys ? rules_.OfKeys(*keys) : rules_.Of(i);
      ComparedTensors measured = Measured(problem_, i, got[i], expected, noise, jumps[i]);
      const Comparison compared = failure.empty() ? excuses_.Compare({i, leaves, slot->shape_set, keys.has_value()},
                                                                     std::move(measured), rule, &turns_to_excuse)
                                                  : CompareTensors(measured, rule);
      if (given && !expected.wide.empty()) ties_[{slot->shape_set, i}] = compared.noise.ties;
      jumps_[i] = {compared.jumps_expected, compared.jumps};
      if (compared.undecided && (compared.mismatched > 0 || compared.jumps > 0)) {
        if (undecided.empty()) {
          undecided = "rounding decides most of " + words_.Name(i, got.size()) +
                      ": the reference itself gives other values when its inputs move in their last bit, so that "
                      "right and wrong cannot be told apart; `grove problem check` says more";
        }
        if (failure.empty() && slot->LeftUnwritten(i, got[i])) {
          failure = words_.Name(i, got.size()) + " has elements that were never written where the reference gives NaN";
        }
        continue;
      }
      if (compared.noise.known) noise_[i] = compared.noise;
      excused = excused || compared.excused;
      outputs.push_back(words_.Describe(i, expected.plain[i], compared, secret));
      if (!rule.leaning && !secret.quiet) current_->error = std::max(current_->error, compared.scaled_error);
      if (given) {
        given_rms_.resize(got.size(), 0);
        given_rms_[i] = std::max(given_rms_[i], compared.rms);
        findings_.figures.Add(compared, rule.leaning, secret.quiet);
      }
      if (compared.ok && failure.empty() && slot->LeftUnwritten(i, got[i])) {
        failure = words_.Name(i, got.size()) + " has elements that were never written where the reference gives NaN";
      }
      if (!compared.ok && failure.empty())
        failure = words_.Explain(i, got.size(), got[i], expected.plain[i], compared, trial, secret);
    }
  }
  if (failure.empty() && !undecided.empty()) {
    Verdict verdict{"VERDICT_UNMEASURABLE", undecided, {}};
    verdict.undecided = true;
    throw verdict;
  }
  if (failure.empty() && marks_) {
    failure = MarkOfRounding(got, expected, leaves, secret);
    if (!failure.empty()) findings_.figures.also_scaled = false;
  }
  if (!failure.empty()) {
    findings_.first_failing = trial;
    findings_.outputs = outputs;
    if (varied_) failure += "; parameters have other values in each evaluation than as they were built";
    if (given && !current_->how.empty()) failure += "; the inputs were " + current_->how;
    if (!given) {
      failure = OnTheseInputs(*current_, findings_.outcomes.front().passed, failure);
    }
    throw Verdict{"VERDICT_WRONG", failure, {}};
  }
  ++findings_.passed;
  ++current_->passed;
  if (given && !rules_.rule.leaning) findings_.KeepWorst(outputs);
  return excused;
}

std::string Check::MarkOfRounding(const std::vector<at::Tensor>& got, const Expected& expected,
                                  const std::vector<Leaf>& leaves, const Secrecy& secret) {
  try {
    const Lowering lowering = FindLowering(problem_, leaves, expected, got, &secret_);
    if (!lowering.found()) return "";
    return "the errors of " + words_.Name(lowering.output, got.size()) + " " + lowering.what +
           (secret.quiet ? "" : " (" + lowering.figures + ")") +
           ": precision was lowered where sums are so long that it does not show";
  } catch (const std::exception&) {  // no memory to look
    return "";
  }
}

std::optional<Expected> Check::Better(const Expected& expected, const std::vector<Leaf>& leaves,
                                      std::size_t shape_set) {
  reference_.SelectShapeSet(shape_set);
  const bool whole = !expected.nudged.empty();
  Expected own = whole ? expected : Compute(leaves, true, true);
  const bool better = !own.nudged.empty() && (expecting_.NudgeMore(leaves, &own) || !whole);
  reference_.SelectShapeSet(0);
  if (!better) return std::nullopt;
  return own;
}

bool Check::VerifyFairly(const Conversation& conversation, Arena* arena, Slot* slot, const Reply& reply,
                         const std::vector<at::Tensor>& got, const Expected& expected, const std::vector<Leaf>& leaves,
                         int trial, Drawn drawn) {
  const bool whole = !expected.nudged.empty(), alone = drawn != Drawn::kForCheck;
  const std::vector<ReferenceNoise> noise = noise_;
  const Findings::Figures figures = findings_.figures;
  const double error = current_->error;
  const std::vector<json> outputs = findings_.outputs;
  // Where terms cancel nearly all, one draw in many says nothing; others have.
  const auto says_nothing = [&](const Verdict& verdict) {
    if (!verdict.undecided || findings_.passed == 0) return false;
    ++findings_.passed;
    ++current_->passed;
    jumps_.assign(jumps_.size(), {});
    return true;
  };
  std::optional<Expected> better;
  if (whole && alone) noise_.assign(noise.size(), {});
  try {
    const bool excused = Verify(conversation, arena, slot, got, reply, expected, leaves, trial);
    if (!whole || !alone) return excused;
  } catch (const Verdict& verdict) {
    if (verdict.verdict == "VERDICT_WRONG" && !findings_.inputs_modified) {
      better = Better(expected, leaves, slot->shape_set);
      if (!better) throw;
    } else if (!whole || !alone || !says_nothing(verdict)) {
      throw;
    }
  }
  const auto verify_again = [&] {
    --findings_.trials;
    --current_->trials;
    current_->error = error;
    findings_.first_failing = 0;
    findings_.figures = figures;
    findings_.outputs = outputs;
    noise_.assign(noise.size(), {});
    Verify(conversation, arena, slot, got, reply, *better, leaves, trial);
  };
  if (better) {
    try {
      verify_again();
    } catch (const Verdict& verdict) {
      const bool seldom = drawn == Drawn::kTimed && verdict.verdict == "VERDICT_WRONG" && beyond_ <= timed_ / kSeldom;
      if (!seldom && ((whole && !alone) || !says_nothing(verdict))) throw;
      if (seldom) {
        const Set<double> times(&rules_.rule.times, kBeyond);
        try {
          verify_again();
        } catch (const Verdict&) {
          throw verdict;
        }
        ++beyond_;
        // By the rule as it is otherwise it does not pass, and says nothing of what others do.
        findings_.figures = figures;
        findings_.outputs = outputs;
        current_->error = error;
      }
    }
  }
  if (!whole || alone) noise_ = noise;  // errors that this draw alone allows are no measure for others
  return true;
}

template <typename Work>
void Check::OnOthers(Distribution distribution, int form, const Work& work) {
  // Also where a verdict ends it.
  struct Given {
    Check* check;
    std::vector<ReferenceNoise> noise = check->noise_;
    std::vector<Jumps> jumps = check->jumps_;
    ~Given() {
      check->rules_ = {check->rule_, {}};
      check->findings_.outcomes.front().how.clear();
      check->noise_ = std::move(noise);
      check->jumps_ = std::move(jumps);
      check->marks_ = false;
      check->current_ = &check->findings_.outcomes.front();
    }
  } given{this};
  rules_ = RulesOn(distribution, form, rule_, settings_.reduced, given_rms_);
  for (Outcome& outcome : findings_.outcomes) {
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
  // One of those that are timed, as drawn; which one, nobody can know.
  std::vector<int> plain;
  for (int trial = 1; trial <= trials; ++trial) {
    if (order[static_cast<std::size_t>(trial) - 1] == 0 && trial != leaning) plain.push_back(trial);
  }
  const int marked = plain[random->Below(plain.size())];
  std::vector<bool> drawn(sets, false);
  for (int trial = 1; trial <= trials; ++trial) {
    progress("check", "trial " + std::to_string(trial) + " of " + std::to_string(trials));
    const std::size_t set = order[static_cast<std::size_t>(trial) - 1];
    const std::size_t index = set == 0 ? random->Below(timed_slots) : timed_slots + set - 1;
    Slot* slot = &arena->at(index);
    reference_.SelectShapeSet(set);
    arena->Forget();
    std::vector<Leaf> leaves = reference_.Draw(SecretSeed());
    // A float64 evaluation that is slow is done for a shape's first trial alone: its noise figures serve the others.
    const bool first = !drawn[set];
    drawn[set] = true;
    // Indices that rounding decides are few and other ones in each draw: there every draw says how many. Of figures,
    // whose small ones are judged one by one, and of what stands beside fills, each draw says what it leaves of them.
    Expected expected;
    std::optional<OtherDraw> moved;
    if (trial == leaning) moved = others_.Lean(*slot, leaves);
    const bool leans = moved.has_value();
    if (leans) {
      expected = std::move(moved->expected);
      leaves = std::move(moved->leaves);
      current_->how = moved->how;
    } else {
      // (One that is to be looked at for marks of lower precision needs it.)
      const bool high = first || problem_.double_seconds < 0.5 ||
                        (trial == marked && problem_.double_seconds < kMostForMarks && LooksForMarks(leaves));
      expected = Compute(leaves, high, first || fills_ || HasExact(*slot) || HasFigures(*slot));
      fills_ = fills_ || HasFills(expected.high);
      slot->MustFit(expected.plain);  // before a candidate runs: it is the problem's fault
    }
    others_.Saw(expected);
    reference_.SelectShapeSet(0);
    arena->Fill(slot, std::move(leaves));
    arena->Poison(slot);
    MakeRoom();
    ops_.Synchronize();
    if (reference_.HeldOut(slot->shape_set)) conversation->KeepQuiet();
    Reply reply = conversation->Run({index}, "all", settings_.observe && trial == observed);
    if (!reply.work.is_null()) work_ = std::move(reply.work);
    first_claims_.push_back(reply.claims[0]);
    rules_.rule.leaning = leans;
    // What leaning values show of rounding is no measure for others.
    std::vector<ReferenceNoise> noise = noise_;
    marks_ = trial == marked && LooksForMarks(slot->leaves);
    VerifyFairly(*conversation, arena, slot, reply, Take(*slot, expected), expected, slot->leaves, trial,
                 leans ? Drawn::kLeaning : Drawn::kForCheck);
    if (marks_) others_.KeepGiven(kAsDrawn);
    marks_ = false;
    if (leans) noise_ = std::move(noise);
    if (leans && set == 0) others_.KeepGiven(kLeaning);
    rules_ = {rule_, {}};
    current_->how.clear();
  }
  std::vector<Distribution> others;
  if (settings_.distributions) {
    others = *settings_.distributions;
  } else if (judged_elsewhere) {
    others = {Distribution::kScaled, Distribution::kShifted, Distribution::kSparse, Distribution::kOutliers};
  }
  for (std::size_t i = others.size(); i > 1; --i) std::swap(others[i - 1], others[random->Below(i)]);
  // Behind the others, whose time they do not take.
  if (!settings_.distributions && judged_elsewhere) {
    others.insert(others.end(), {Distribution::kRare, Distribution::kIntegers});
  }
  const auto begin = Clock::now();
  double each =  // as it was at load, when the machine may have been busy; less once one has taken less
      kForeignDraws * (problem_.draw_seconds + problem_.reference_seconds + 2 * std::max(problem_.double_seconds, 0.0));
  double counted = 0, longest = 0;
  for (Distribution one : others) {
    findings_.outcomes.push_back({});
    findings_.outcomes.back().distribution = one;
    findings_.outcomes.back().skipped = others_.Idle(one);
    if (!findings_.outcomes.back().skipped.empty()) continue;
    const double spent = Since(begin) - foreign_wall_;  // not the candidate's
    // (The first is tried whatever it takes.)
    if (longest > 0 &&
        (counted + each > kForeignShare * settings_.run_wall || spent + longest > kForeignMost * settings_.run_wall)) {
      findings_.outcomes.back().skipped = "there was no time: the reference and its evaluation in float64 take long";
      continue;
    }
    progress("check", std::string(Word(one)) + " inputs");
    OnOthers(one, 0, [&] { Try(one, conversation, arena, timed_slots, random); });
    const double took = Since(begin) - foreign_wall_ - spent;
    longest = std::max(longest, took);
    counted += std::min(each, took);
    each = std::min(each, longest);
  }
  arena->Forget();
}

bool Check::LooksForMarks(const std::vector<Leaf>& leaves) const {
  if (rule_.mode != RuleMode::kScaled || rule_.reduced > 0 || !others_.LongSums() || !expecting_.has_high()) {
    return false;
  }
  try {
    return MayShowLowering(problem_, leaves);
  } catch (const std::exception&) {  // no memory to look
    return false;
  }
}

void Check::MakeRoom() {
  if (!problem_.large()) return;
  // Half of the device is what a candidate may hold by default.
  if (settings_.device_memory <= 0 || static_cast<double>(ops_.free_bytes()) < settings_.device_memory) {
    ops_.ReleaseCache();
  }
}

void Check::Try(Distribution distribution, Conversation* conversation, Arena* arena, std::size_t timed_slots,
                Random* random) {
  const std::size_t drawn_set = random->Below(reference_.ShapeSets()), timed = random->Below(timed_slots);
  std::set<int> borne;
  for (int form = 0; form < Forms(distribution); ++form) {
    if (Needless(distribution, form, borne) || others_.Idle(distribution, form)) continue;
    const std::size_t set = OfFirstShapes(distribution, form) ? 0 : drawn_set;
    const std::size_t index = set == 0 ? timed : timed_slots + set - 1;
    Slot* slot = &arena->at(index);
    arena->Forget();
    noise_.assign(noise_.size(), {});
    rules_ = RulesOn(distribution, form, rule_, settings_.reduced, given_rms_);
    OtherDraw drawn = others_.Draw(distribution, form, *slot, rules_);
    if (!drawn.skipped.empty()) {
      if (current_->trials == 0 && (current_->skipped.empty() || drawn.skipped != kTried)) {
        current_->skipped = drawn.skipped;
      }
      continue;
    }
    current_->skipped.clear();
    current_->how = drawn.how;
    rules_.one_term = drawn.one_term;
    arena->Fill(slot, std::move(drawn.leaves));
    arena->Poison(slot);
    MakeRoom();
    ops_.Synchronize();
    if (reference_.HeldOut(slot->shape_set)) conversation->KeepQuiet();
    const Reply reply = RunThere(conversation, index);
    foreign_wall_ += reply.wall;
    VerifyOther(*conversation, arena, slot, reply, Take(*slot, drawn.expected), drawn.expected, slot->leaves);
    others_.Keep(drawn, *slot);  // whichever shapes it was tried on
    borne.insert(form);
  }
}

void Check::VerifyOther(const Conversation& conversation, Arena* arena, Slot* slot, const Reply& reply,
                        std::vector<at::Tensor> got, const Expected& expected, const std::vector<Leaf>& leaves) {
  const int trial = findings_.trials + 1;
  if (expected.nudged.empty()) {  // such values have no evaluations but those that they were drawn with
    Verify(conversation, arena, slot, std::move(got), reply, expected, leaves, trial);
  } else {
    VerifyFairly(conversation, arena, slot, reply, got, expected, leaves, trial, Drawn::kForCheck);
  }
}

Reply Check::RunThere(Conversation* conversation, std::size_t index) {
  try {
    return conversation->Run({index}, "all");
  } catch (Verdict& crashed) {
    if (crashed.verdict == "VERDICT_CRASHED") {
      crashed.reason = OnTheseInputs(*current_, findings_.outcomes.front().passed, crashed.reason);
    }
    throw;
  }
}

double Check::AgainSeconds() const {
  constexpr double kEager = 2, kDouble = 6;  // evaluations for a draw, about
  return problem_.draw_seconds + kEager * problem_.reference_seconds + kDouble * std::max(problem_.double_seconds, 0.0);
}

std::optional<OtherDraw> Check::DrawAgain(const Slot& slot) {
  constexpr double kMostOfWall = 0.015;  // where one takes longer at best, there is none
  if (AgainSeconds() > kMostOfWall * settings_.run_wall) return std::nullopt;
  while (const auto kept = others_.TakeKept()) {
    const double seconds = problem_.double_seconds;
    std::optional<OtherDraw> drawn;
    OnOthers(kept->first, kept->second, [&] {
      if (kept->first == Distribution::kGiven && kept->second == kAsDrawn) rules_.rule.leaning = false;
      drawn = ExpectsLater() ? others_.DrawValues(kept->first, kept->second, slot)
                             : others_.Draw(kept->first, kept->second, slot, rules_);
    });
    // Slots and references hold memory now, for want of which the check's evaluations do not end.
    problem_.double_seconds = seconds;
    if (ExpectsLater() && drawn->no_memory) throw NoRoomBetweenRuns();
    if (!drawn->skipped.empty()) continue;
    MakeRoom();
    return drawn;
  }
  return std::nullopt;
}

bool Check::VerifyAgain(const Conversation& conversation, Arena* arena, Slot* slot, const Reply& reply,
                        OtherDraw drawn) {
  bool of_use = true;
  OnOthers(drawn.distribution, drawn.form, [&] {
    if (drawn.as_drawn) rules_.rule.leaning = false;
    std::vector<at::Tensor> got = Take(*slot);
    if (ExpectsLater()) {
      const double seconds = problem_.double_seconds;
      others_.Expect(*slot, rules_, &drawn);
      problem_.double_seconds = seconds;
      if (others_.Lacks(drawn)) throw NoRoomBetweenRuns();
      of_use = drawn.skipped.empty();
    }
    if (of_use) {
      current_->how = drawn.how + ", between timed runs";
      rules_.one_term = drawn.one_term;
      marks_ = drawn.as_drawn;
      try {
        VerifyOther(conversation, arena, slot, reply, std::move(got), drawn.expected, drawn.leaves);
      } catch (const Verdict& verdict) {
        // With what is missing it might be right.
        if (verdict.verdict == "VERDICT_WRONG" && ExpectsLater() && drawn.expected.no_room) throw NoRoomBetweenRuns();
        throw;
      }
    }
    got.clear();
    drawn.expected = {};
    MakeRoom();
  });
  return of_use;
}

}  // namespace grove::judge
