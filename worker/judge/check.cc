#include "worker/judge/check.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cmath>

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

constexpr char kHidden[] = "[a shape that is held out]";

at::Tensor At(const std::vector<at::Tensor>& tensors, std::size_t i) {
  return i < tensors.size() ? tensors[i] : at::Tensor();
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
      high_fits_(high_fits),
      paths_(problem.reference->OutputPaths()),
      secret_(Random::Secret()) {
  rule_.reduced = rule_.mode == RuleMode::kScaled ? settings.reduced : 0;
  verify_rule_ = rule_;
  outcomes_.reserve(8);
  outcomes_.push_back({});
  current_ = &outcomes_.front();
}

Rule Check::ForeignRule() const {
  Rule rule;
  rule.reduced = settings_.reduced;
  rule.cap = kMostNoise;
  rule.any_order = true;
  return rule;
}

Expected Check::Compute(const std::vector<Leaf>& leaves, bool high, bool nudge) {
  Expected expected;
  auto call = reference_.Prepare(leaves, Mode::kEager);
  call->Run();
  expected.plain = call->Outputs();
  if (high && high_fits_ && problem_.double_seconds >= 0) {
    try {
      auto exact = reference_.Prepare(leaves, Mode::kDouble);
      exact->Run();
      expected.high = exact->Outputs();
      if (expected.high.size() != expected.plain.size()) expected.high.clear();
      for (std::size_t i = 0; i < expected.high.size(); ++i) {
        if (expected.high[i].sizes() != expected.plain[i].sizes()) expected.high.clear();
      }
      if (nudge && !expected.high.empty()) {
        try {
          auto moved = reference_.Prepare(Nudge(leaves, kNudge, &secret_), Mode::kDouble);
          moved->Run();
          expected.nudged = moved->Outputs();
        } catch (const std::exception&) {
          expected.nudged.clear();  // no memory for a second one: judged without
        }
        if (expected.nudged.size() != expected.high.size()) expected.nudged.clear();
        for (std::size_t i = 0; i < expected.nudged.size(); ++i) {
          if (expected.nudged[i].sizes() != expected.high[i].sizes()) expected.nudged.clear();
        }
        if (!expected.nudged.empty() && std::any_of(expected.high.begin(), expected.high.end(), Stepped)) {
          try {
            ops_.Synchronize();  // what was queued before is not its time
            const Clock::time_point begin = Clock::now();
            auto moved = reference_.Prepare(Nudge(leaves, kWideNudge, &secret_), Mode::kDouble);
            moved->Run();
            expected.wide = moved->Outputs();
            ops_.Synchronize();
            expected.nudge_seconds = Since(begin);
          } catch (const std::exception&) {
            expected.wide.clear();
          }
          if (expected.wide.size() != expected.high.size()) expected.wide.clear();
          for (std::size_t i = 0; i < expected.wide.size(); ++i) {
            if (expected.wide[i].sizes() != expected.high[i].sizes()) expected.wide.clear();
          }
        }
        CountJumps(leaves, &expected);
        CountTies(leaves, &expected);
        if (!expected.nudged.empty()) NudgeMore(leaves, &expected);
      }
    } catch (const std::exception&) {
      expected.high.clear();
      problem_.double_seconds = -1;
    }
  }
  return expected;
}

// By one nudge the response of a single sum may be anything down to 0; of thousands of elements some are large. What
// jumps is left as the one nudge shows it.
void Check::NudgeMore(const std::vector<Leaf>& leaves, Expected* expected) {
  constexpr std::int64_t kFew = 256;
  constexpr int kNudges = 12;           // with the first
  constexpr double kMostSeconds = 0.2;  // for all of them
  if (problem_.double_seconds * kNudges > kMostSeconds) return;
  struct Responses {
    std::size_t output;
    at::Tensor high, jump, squares, count;
    void Add(const at::Tensor& moved) {
      const at::Tensor response = (moved.to(at::kDouble) - high).abs(), slope = response.le(jump);  // of NaN: false
      squares += response.square().masked_fill(slope.logical_not(), 0);
      count += slope.to(at::kDouble);
    }
  };
  std::vector<Responses> few;
  for (std::size_t i = 0; i < expected->high.size(); ++i) {
    const at::Tensor& high = expected->high[i];
    if (!Fractions(high) || high.is_complex() || high.numel() == 0 || high.numel() > kFew) continue;
    const at::Tensor values = high.to(at::kDouble);
    few.push_back(
        {i, values, kJump * at::sqrt(values.square().mean()), at::zeros_like(values), at::zeros_like(values)});
    few.back().Add(expected->nudged[i]);
  }
  if (few.empty()) return;
  const Clock::time_point begin = Clock::now();
  try {
    for (int nudges = 1; nudges < kNudges && Since(begin) < kMostSeconds; ++nudges) {
      const auto moved = reference_.Prepare(Nudge(leaves, kNudge, &secret_), Mode::kDouble);
      moved->Run();
      const std::vector<at::Tensor> outputs = moved->Outputs();
      for (Responses& one : few) {
        if (one.output < outputs.size() && outputs[one.output].sizes() == one.high.sizes()) {
          one.Add(outputs[one.output]);
        }
      }
    }
  } catch (const std::exception&) {  // no memory for another one: those that there are
  }
  for (const Responses& one : few) {
    at::Tensor& nudged = expected->nudged[one.output];
    const at::Tensor first = (nudged.to(at::kDouble) - one.high).abs();
    nudged =
        at::where(first.le(one.jump), one.high + (one.squares / one.count.clamp_min(1)).sqrt(), nudged.to(at::kDouble));
  }
}

// Thresholds that one output in many crosses, while honest programs differ by a few roundings and thousands of outputs
// are compared: inputs are moved until some are seen to cross. What is bent, not broken, may look so for large moves,
// so a smaller one bounds the count: four elements that chance let it miss.
void Check::CountJumps(const std::vector<Leaf>& leaves, Expected* expected) {
  // Further where there are few elements.
  constexpr std::int64_t kFew = 4096;
  bool few = true;
  for (const at::Tensor& output : expected->plain) few = few && output.numel() <= kFew;
  const double kFar = few ? 0x1p-8 : 0x1p-11, kHalfway = few ? 0x1p-11 : 0x1p-14;
  constexpr double kMissed = 4;
  constexpr double kMostSeconds = 0.5;  // of one evaluation in float64
  if (expected->nudged.empty() || problem_.continuous || problem_.double_seconds > kMostSeconds) return;
  const auto count = [&](double size) {
    std::vector<double> jumps(expected->high.size(), 0);
    const auto moved = reference_.Prepare(Nudge(leaves, size, &secret_), Mode::kDouble);
    moved->Run();
    const std::vector<at::Tensor> outputs = moved->Outputs();
    for (std::size_t i = 0; i < jumps.size() && i < outputs.size(); ++i) {
      jumps[i] = JumpsBeyond(expected->high[i], expected->nudged[i], outputs[i], size);
    }
    return jumps;
  };
  try {
    const std::vector<double> far = count(kFar);
    if (std::all_of(far.begin(), far.end(), [](double jumps) { return jumps == 0; })) {
      expected->jumps.assign(far.size(), 0);
      return;
    }
    const std::vector<double> halfway = count(kHalfway);
    for (std::size_t i = 0; i < far.size(); ++i) {
      const double n = static_cast<double>(std::max<std::int64_t>(expected->high[i].numel(), 1));
      const double most = (halfway[i] + kMissed) * (kNudge / kHalfway);
      expected->jumps.push_back(std::min(far[i] * (kNudge / kFar), most) / n);
    }
  } catch (const std::exception&) {
    expected->jumps.clear();  // no memory for another one: judged without
  }
}

// One nudge shows a fourth of the ties: of few ties perhaps none, and a program that decides one of them otherwise
// would be WRONG. Nudged until nearly all have shown, as far as there is time.
void Check::CountTies(const std::vector<Leaf>& leaves, Expected* expected) {
  constexpr int kMostTurns = 24;        // show 999 of 1,000 ties of two
  constexpr double kMostSeconds = 0.2;  // for all of them
  if (expected->wide.empty() || std::all_of(expected->plain.begin(), expected->plain.end(), Fractions)) return;
  const Clock::time_point begin = Clock::now();
  std::vector<at::Tensor> masks(expected->high.size());
  int turns = 0;
  double longest = expected->nudge_seconds;
  try {
    const auto add = [&](const std::vector<at::Tensor>& outputs) {
      for (std::size_t i = 0; i < masks.size(); ++i) {
        if (Fractions(expected->plain[i])) continue;
        const at::Tensor turned = outputs[i].ne(expected->high[i]);
        masks[i] = masks[i].defined() ? masks[i].logical_or(turned) : turned;
      }
      ++turns;
    };
    add(expected->nudged);
    while (turns < kMostTurns && Since(begin) + longest < kMostSeconds) {
      const Clock::time_point turn = Clock::now();
      auto moved = reference_.Prepare(Nudge(leaves, kNudge, &secret_), Mode::kDouble);
      moved->Run();
      const std::vector<at::Tensor> outputs = moved->Outputs();
      if (outputs.size() != masks.size()) return;
      for (std::size_t i = 0; i < masks.size(); ++i) {
        if (outputs[i].sizes() != expected->high[i].sizes()) return;
      }
      add(outputs);
      ops_.Synchronize();  // what was queued has to be paid for, too
      longest = std::max(longest, Since(turn));
    }
  } catch (const std::exception&) {
    if (turns == 0) return;  // no memory for another one: what was counted so far
  }
  expected->turns = turns;
  expected->turned = std::move(masks);
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

bool Check::Verify(const Conversation& conversation, Arena* arena, Slot* slot, const Reply& reply,
                   const Expected& expected, int trial) {
  ++trials_;
  ++current_->trials;
  const bool given = current_->distribution == Distribution::kGiven;
  const bool held_out = reference_.HeldOut(slot->shape_set);
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
  if (settings_.python_candidate) CheckTypes(conversation, reply, expected, &outputs, &failure);
  if (failure.empty() && !arena->OutputGuardsIntact(slot)) {
    failure = "the candidate wrote outside of its output";
  }
  if (failure.empty()) {
    outputs.clear();
    noise_.resize(got.size());
    jumps_.resize(got.size());
    const std::vector<double> jumps = MeanJumps(expected, given);
    for (std::size_t i = 0; i < got.size(); ++i) {
      ReferenceNoise noise = noise_[i];
      const auto ties = ties_.find({slot->shape_set, i});
      if (given && ties != ties_.end()) noise.ties = ties->second;
      const Comparison compared = CompareTensors(
          {got[i], expected.plain[i], At(expected.high, i), At(expected.nudged, i), problem_.ReductionOf(i), noise,
           At(expected.wide, i), jumps[i], At(expected.turned, i), expected.turns},
          verify_rule_);
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
      outputs.push_back(Describe(i, expected.plain[i], compared, held_out));
      current_->error = std::max(current_->error, compared.scaled_error);
      if (given) {
        figures_.also_1e4 = figures_.also_1e4 && compared.passes_1e4;
        figures_.also_1e2 = figures_.also_1e2 && compared.passes_1e2;
        figures_.also_scaled =
            figures_.also_scaled && compared.passes_scaled && !(compared.scaled_error > compared.scaled_same);
        figures_.worst_allowed = std::max(figures_.worst_allowed, compared.scaled_allowed);
        figures_.error_found = std::max(figures_.error_found, compared.scaled_error);
        figures_.error_same = std::max(figures_.error_same, compared.scaled_same);
        figures_.condition = std::max(figures_.condition, compared.noise.condition);
        figures_.reference_noise = std::max(figures_.reference_noise, compared.noise.rms);
      }
      if (compared.ok && failure.empty() && slot->LeftUnwritten(i, got[i])) {
        failure = Output(i, got.size()) + " has elements that were never written where the reference gives NaN";
      }
      if (!compared.ok && failure.empty())
        failure = Explain(i, got.size(), got[i], expected.plain[i], compared, trial, held_out);
    }
  }
  if (failure.empty() && !undecided.empty()) throw Verdict{"VERDICT_UNMEASURABLE", undecided, {}};
  if (!failure.empty()) {
    first_failing_ = trial;
    outputs_ = outputs;
    if (varied_) failure += "; parameters have other values in each evaluation than as they were built";
    if (!given) {
      failure = std::string("on ") + Word(current_->distribution) + " inputs (" + current_->how + ") " + failure +
                ". It was right on all " + std::to_string(outcomes_.front().passed) +
                " draws of the problem's own values; --only-given-inputs judges by those alone";
    }
    throw Verdict{"VERDICT_WRONG", failure, {}};
  }
  ++trials_passed_;
  ++current_->passed;
  if (given) KeepWorst(outputs);
  return excused;
}

bool Check::VerifyFairly(const Conversation& conversation, Arena* arena, Slot* slot, const Reply& reply,
                         const Expected& expected, const std::vector<Leaf>& leaves, int trial, bool timed) {
  const bool whole = !expected.nudged.empty();
  if (whole && !timed) return Verify(conversation, arena, slot, reply, expected, trial);
  const std::vector<ReferenceNoise> noise = noise_;
  Expected own;
  if (!whole) {
    const Figures figures = figures_;
    const double error = current_->error;
    const std::vector<json> outputs = outputs_;
    try {
      return Verify(conversation, arena, slot, reply, expected, trial);
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
    Verify(conversation, arena, slot, reply, whole ? expected : own, trial);
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

void Check::CheckTypes(const Conversation& conversation, const Reply& reply, const Expected& expected,
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
    json description{
        {"index", i}, {"path", Path(i)}, {"expected_type", wanted}, {"elements", expected.plain[i].numel()}};
    const bool scalar = where == "scalar" && expected.plain[i].dim() == 0;
    if (got != wanted || (where != device && !scalar)) {
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
    *failure = "the candidate returns " + std::to_string(reply.outputs.size()) + " outputs, and the reference " +
               std::to_string(expected.plain.size());
  }
}

std::string Check::Path(std::size_t i) const { return i < paths_.size() ? paths_[i] : ""; }

std::string Check::Output(std::size_t i, std::size_t count) const {
  return count == 1 ? "the output" : "output " + (Path(i).empty() ? std::to_string(i) : Path(i));
}

json Check::Describe(std::size_t i, const at::Tensor& expected, const Comparison& compared, bool held_out) const {
  json output{{"index", i},
              {"path", Path(i)},
              {"expected_type", held_out ? ShortType(expected.scalar_type()) + kHidden : TypeText(expected)},
              {"elements", held_out ? 0 : compared.elements},
              {"mismatched", held_out ? 0 : compared.mismatched},
              {"max_abs_error", Number(compared.max_abs_error)},
              {"max_rel_error", Number(compared.max_rel_error)},
              {"scaled_error", Number(compared.scaled_error)}};
  if (compared.worst >= 0) {
    output["worst"] = {{"index", held_out ? json::array() : json(Unravel(compared.worst, expected.sizes().vec()))},
                       {"expected", Number(compared.expected)},
                       {"got", Number(compared.got)},
                       {"error", Number(compared.error)},
                       {"allowed", Number(compared.allowed)}};
  }
  return output;
}

std::string Check::Explain(std::size_t i, std::size_t count, const at::Tensor& got, const at::Tensor& expected,
                           const Comparison& compared, int trial, bool held_out) const {
  // How many elements there are, and where the worst stands, would tell the shape.
  std::string text = Output(i, count) + " (" +
                     (held_out ? ShortType(expected.scalar_type()) + kHidden : TypeText(expected)) +
                     ") is wrong in trial " + std::to_string(trial) + ": " + compared.why;
  if (!held_out) {
    text += "; " + std::to_string(compared.mismatched) + " of " + std::to_string(compared.elements) + " elements";
  }
  if (compared.worst >= 0) {
    const std::string at = held_out ? "" : " at " + json(Unravel(compared.worst, expected.sizes().vec())).dump();
    char figures[200];
    std::snprintf(figures, sizeof figures, ", worst%s: expected %.9g, got %.9g", at.c_str(), compared.expected,
                  compared.got);
    text += figures;
    if (std::isnan(compared.got) && compared.mismatched > 0 && !held_out) text += Unwritten(got);
  }
  return text;
}

void Check::Run(Conversation* conversation, Arena* arena, std::size_t timed_slots, Random* random,
                const Progress& progress) {
  const std::size_t sets = reference_.ShapeSets();
  const int trials = std::max<int>(settings_.trials, static_cast<int>(sets));
  for (int trial = 1; trial <= trials; ++trial) {
    progress("check", "trial " + std::to_string(trial) + " of " + std::to_string(trials));
    const std::size_t set = static_cast<std::size_t>(trial - 1) % sets;
    const std::size_t index = set == 0 ? random->Below(timed_slots) : timed_slots + set - 1;
    Slot* slot = &arena->at(index);
    reference_.SelectShapeSet(set);
    slot->leaves.clear();  // the last draw's memory serves the next
    std::vector<Leaf> leaves = reference_.Draw(SecretSeed());
    // A float64 evaluation that is slow is done for the first trial alone: its noise figures serve the others.
    const bool first = trial <= static_cast<int>(sets);
    // Indices that rounding decides are few and other ones in each draw: there every draw says how many.
    Expected expected = Compute(leaves, first || problem_.double_seconds < 0.5, first || HasExact(*slot));
    slot->MustFit(expected.plain);  // before a candidate runs: it is the problem's fault
    given_finite_ = given_finite_ && AllFinite(expected.plain);
    reference_.SelectShapeSet(0);
    arena->Fill(slot, std::move(leaves));
    arena->Poison(slot);
    ops_.Synchronize();
    Reply reply = conversation->Run({index}, "all", settings_.observe && trial == trials);
    if (!reply.work.is_null()) work_ = std::move(reply.work);
    first_claims_.push_back(reply.claims[0]);
    VerifyFairly(*conversation, arena, slot, reply, expected, slot->leaves, trial, /*timed=*/false);
  }
  std::vector<Distribution> others;
  if (settings_.distributions) {
    others = *settings_.distributions;
  } else if (rule_.mode == RuleMode::kScaled) {
    others = {Distribution::kScaled, Distribution::kShifted, Distribution::kSparse, Distribution::kOutliers};
  }
  for (std::size_t i = others.size(); i > 1; --i) std::swap(others[i - 1], others[random->Below(i)]);
  const std::vector<ReferenceNoise> given_noise = noise_;
  const auto begin = Clock::now();
  double longest = 0;
  for (Distribution one : others) {
    outcomes_.push_back({});
    current_ = &outcomes_.back();
    current_->distribution = one;
    const double spent = Since(begin) - foreign_wall_;  // not the candidate's
    if (spent + longest > kForeignShare * settings_.run_wall) {
      current_->skipped = "there was no time: the reference and its evaluation in float64 take long";
      continue;
    }
    progress("check", std::string(Word(one)) + " inputs");
    verify_rule_ = ForeignRule();
    Try(one, conversation, arena, timed_slots, random);
    longest = std::max(longest, Since(begin) - foreign_wall_ - spent);
  }
  verify_rule_ = rule_;
  noise_ = given_noise;
  current_ = &outcomes_.front();
}

void Check::Try(Distribution distribution, Conversation* conversation, Arena* arena, std::size_t timed_slots,
                Random* random) {
  const std::size_t set = random->Below(reference_.ShapeSets());
  const std::size_t index = set == 0 ? random->Below(timed_slots) : timed_slots + set - 1;
  Slot* slot = &arena->at(index);
  for (int form = 0; form < Forms(distribution); ++form) {
    noise_.assign(noise_.size(), {});
    reference_.SelectShapeSet(set);
    slot->leaves.clear();
    std::vector<Leaf> leaves = reference_.Draw(SecretSeed());
    std::string skipped;
    try {
      const Transformed made = Transform(distribution, form, problem_.reduction, &secret_, &leaves);
      current_->how = made.how;
      skipped = made.skipped;
    } catch (const std::exception& error) {
      skipped = "such values cannot be made: " + Bounded(error.what(), 200);
    }
    // Among equal keys any index is right, and these values make some: zeros, or probabilities that are all zero.
    // Shifted ones make differences that are those of rounding, of one sign for a whole column, which no nudge of
    // inputs shows.
    if (skipped.empty() && distribution != Distribution::kGiven &&
        std::any_of(slot->out.places.begin(), slot->out.places.end(), [](const Place& place) {
          return place.type.kind == wire::DTypeKind::kInt && place.type.bits >= 32;
        })) {
      skipped = "the reference gives indices or counts, and these values make ties, or differences of rounding alone";
    }
    Expected expected;
    if (skipped.empty()) {
      try {
        expected = Compute(leaves, true, true);
        slot->MustFit(expected.plain);
        skipped = Unusable(expected);
      } catch (const std::exception& error) {
        if (ops_.cuda() && std::string(error.what()).find("device-side assert") != std::string::npos) throw;
        skipped = "the reference refuses such inputs: " + Bounded(error.what(), 200);
      }
    }
    reference_.SelectShapeSet(0);
    if (!skipped.empty()) {
      if (current_->skipped.empty() || skipped != "tried already") current_->skipped = skipped;
      continue;
    }
    current_->skipped.clear();
    arena->Fill(slot, std::move(leaves));
    arena->Poison(slot);
    ops_.Synchronize();
    const Reply reply = conversation->Run({index}, "all");
    foreign_wall_ += reply.wall;
    Verify(*conversation, arena, slot, reply, expected, trials_ + 1);
    return;
  }
}

std::string Check::Unusable(const Expected& expected) {
  if (given_finite_ && !AllFinite(expected.plain)) return "the reference itself gives NaN or infinity there";
  if (expected.high.empty()) {
    return current_->distribution == Distribution::kShifted
               ? "there is no float64 evaluation that would say what rounding does to such values"
               : "";
  }
  for (std::size_t i = 0; i < expected.plain.size(); ++i) {
    const bool exact = !Fractions(expected.plain[i]);
    const Comparison own = CompareTensors({exact ? expected.plain[i] : at::Tensor(),
                                           expected.plain[i],
                                           At(expected.high, i),
                                           At(expected.nudged, i),
                                           problem_.ReductionOf(i),
                                           {},
                                           At(expected.wide, i),
                                           i < expected.jumps.size() ? expected.jumps[i] : 0,
                                           At(expected.turned, i),
                                           expected.turns},
                                          verify_rule_);
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
  }
  return "";
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
                  high_fits_ && problem_.double_seconds >= 0 ? "the reference in float64" : "the reference as written");
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
