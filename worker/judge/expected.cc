#include "worker/judge/expected.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "worker/judge/compare_tensors.h"
#include "worker/judge/distributions.h"
#include "worker/judge/problem_error.h"
#include "worker/judge/shaken.h"
#include "worker/judge/tensor_type.h"

namespace grove::judge {
namespace {

at::Tensor At(const std::vector<at::Tensor>& tensors, std::size_t i) {
  return i < tensors.size() ? tensors[i] : at::Tensor();
}

}  // namespace

ComparedTensors Measured(const LoadedProblem& problem, std::size_t i, const at::Tensor& got, const Expected& expected,
                         const ReferenceNoise& noise, double jumps) {
  const Expected::Turned turned = i < expected.turned.size() ? expected.turned[i] : Expected::Turned();
  ComparedTensors compared{
      got, expected.plain[i], {}, {}, std::max(problem.ReductionOf(i), expected.crowded), {}, {}, 0, {}, 0};
  compared.noise = problem.Noise();
  const Exactness exactness = Fractions(expected.plain[i]) ? Exactness::kRounded : problem.ExactnessOf(i);
  if (exactness == Exactness::kExact) return compared;  // no nudge says anything of it
  compared.high = At(expected.high, i);
  compared.turned = turned.elements;
  compared.turns = turned.turns;
  if (exactness == Exactness::kChosen && (turned.turns > 0 || !At(expected.nudged, i).defined())) {
    if (turned.turns > 0) compared.nudged = compared.wide = compared.high;  // rounding turns nothing over
    compared.noise.ties = noise.ties;
    return compared;
  }
  if (i < expected.errors.size()) compared.own_error = expected.errors[i];
  compared.nudged = At(expected.nudged, i);
  compared.wide = At(expected.wide, i);
  compared.noise = problem.Noise(noise);
  compared.jumps = problem.ExactnessOf(i) == Exactness::kExact ? 0 : jumps;
  return compared;
}

std::vector<at::Tensor> Expecting::InDouble(const std::vector<Leaf>& leaves, const std::vector<at::Tensor>& like) {
  const auto call = reference_.Prepare(leaves, Mode::kDouble);
  call->Run();
  std::vector<at::Tensor> outputs = call->Outputs();
  bool same = outputs.size() == like.size();
  for (std::size_t i = 0; same && i < outputs.size(); ++i) same = outputs[i].sizes() == like[i].sizes();
  if (!same) outputs.clear();
  return outputs;
}

Expected Expecting::Compute(const std::vector<Leaf>& leaves, bool high, bool nudge) {
  const Choosing choosing(chosen_);
  Expected expected;
  {
    const auto call = reference_.Prepare(leaves, Mode::kEager);
    call->Run();
    expected.plain = call->Outputs();
  }
  if (high && has_high()) {
    try {
      expected.high = InDouble(leaves, expected.plain);
      expected.had_high = !expected.high.empty();
      if (nudge && !expected.high.empty()) {
        FindStill(leaves, expected.high);
        const auto moved = [&](double size) {
          try {
            return InDouble(Moved(leaves, size), expected.plain);
          } catch (const std::exception& error) {
            expected.no_room = expected.no_room || TellsOfMemory(error);  // for a second one: judged without
            return std::vector<at::Tensor>();
          }
        };
        expected.nudged = moved(kNudge);
        if (!expected.nudged.empty() && std::any_of(expected.high.begin(), expected.high.end(), Stepped)) {
          expected.wide = moved(kWideNudge);
        }
        FollowInputs(&expected);
        CountJumps(leaves, &expected);
        CountTies(leaves, &expected);
        if (!expected.nudged.empty()) NudgeMore(leaves, kFew, &expected);
      }
    } catch (const std::exception& error) {
      Expected as_written;
      as_written.plain = std::move(expected.plain);
      as_written.no_room = expected.no_room || TellsOfMemory(error);
      expected = std::move(as_written);
      problem_.double_seconds = -1;
    }
  }
  return expected;
}

std::vector<Leaf> Expecting::Moved(const std::vector<Leaf>& leaves, double size) {
  return Nudge(leaves, problem_.NudgeOf(size), &secret_, problem_.Still());
}

// What moves an output as far however little it moves is no rounding error: t == 1 of whole numbers is true or not.
void Expecting::FindStill(const std::vector<Leaf>& leaves, const std::vector<at::Tensor>& high) {
  constexpr double kLess = 1.0 / 128, kAsFar = 1.0 / 8;
  constexpr double kSeen = 0x1p-18;  // of an output's rms; less may be a reference's that works in float32
  constexpr double kMostSeconds = 0.5;
  if (problem_.still || problem_.double_seconds > kMostSeconds) {
    return;
  }
  const auto moves = [&](std::size_t leaf, double size) {
    std::vector<Leaf> moved = leaves;
    moved[leaf] = Nudge({leaves[leaf]}, size, &secret_).front();
    const auto call = reference_.Prepare(moved, Mode::kDouble);
    call->Run();
    const std::vector<at::Tensor> outputs = call->Outputs();
    std::vector<double> all(high.size(), 0);
    for (std::size_t i = 0; i < high.size() && i < outputs.size(); ++i) {
      if (outputs[i].sizes() != high[i].sizes() || high[i].numel() == 0) continue;
      if (!Fractions(high[i])) {
        all[i] = outputs[i].ne(high[i]).sum().item<double>();
        continue;
      }
      const at::Tensor squares = (outputs[i] - high[i]).abs().square(), own = high[i].abs().square();
      const at::Tensor known = at::isfinite(squares);
      const double size_squared = own.masked_fill(known.logical_not(), 0).mean().item<double>();
      const double squared = squares.masked_fill(known.logical_not(), 0).mean().item<double>();
      all[i] = squared > kSeen * kSeen * size_squared ? std::sqrt(squared) : 0;
    }
    return all;
  };
  std::vector<bool> still(leaves.size(), false);
  try {
    for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf) {
      if (leaves[leaf].scalar || !Fractions(leaves[leaf].tensor) || !IsWhole(leaves[leaf])) continue;
      const std::vector<double> far = moves(leaf, kNudge), near = moves(leaf, kNudge * kLess);
      for (std::size_t i = 0; i < far.size(); ++i) {
        if (near[i] > 0 && near[i] > kAsFar * far[i]) still[leaf] = true;
      }
    }
    // Something has to move: without a response nothing is known of what cancels.
    bool moves_on = false;
    for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf) {
      moves_on = moves_on || (!leaves[leaf].scalar && Fractions(leaves[leaf].tensor) && !still[leaf]);
    }
    problem_.still = moves_on ? std::move(still) : std::vector<bool>();
  } catch (const std::exception&) {  // no memory to look now
  }
}

// What is selected of the inputs as they are follows them, and no threshold on the way is one that rounding crosses.
void Expecting::FollowInputs(Expected* expected) const {
  for (std::size_t i = 0; i < expected->nudged.size(); ++i) {
    if (!Fractions(expected->plain[i]) || problem_.ExactnessOf(i) != Exactness::kExact) continue;
    expected->nudged[i] = expected->high[i].to(expected->nudged[i].scalar_type()) * (1 + problem_.NudgeOf(kNudge));
    if (i < expected->wide.size()) expected->wide[i] = expected->nudged[i];
  }
}

bool Expecting::NudgeMore(const std::vector<Leaf>& leaves, Expected* expected) {
  const Choosing choosing(chosen_);
  return NudgeMore(leaves, kMostElements, expected);
}

// By one nudge the response of a single sum may be anything down to 0; of thousands of elements some are large, unless
// a few of them outweigh all others. What jumps is left as the one nudge shows it, and counted over all of them.
bool Expecting::NudgeMore(const std::vector<Leaf>& leaves, std::int64_t most, Expected* expected) {
  constexpr int kNudges = 12;           // with the first
  constexpr double kMostSeconds = 0.5;  // for all of them
  Turns turns(kMostSeconds);
  struct Responses {
    std::size_t output;
    at::Tensor high, jump, squares, count;
    double jumped = 0;  // elements, over all nudges
    void Add(const at::Tensor& moved) {
      const at::Tensor response = (moved.to(at::kDouble) - high).abs(), slope = response.le(jump);  // of NaN: false
      squares += response.square().masked_fill(slope.logical_not(), 0);
      count += slope.to(at::kDouble);
      jumped += response.gt(jump).logical_and(at::isfinite(high)).sum().item<double>();
    }
  };
  std::vector<Responses> measured;
  int nudges = 1;
  std::int64_t elements = 0;
  try {
    for (std::size_t i = 0; i < expected->high.size(); ++i) {
      const at::Tensor& high = expected->high[i];
      if (!Fractions(high) || high.is_complex() || high.numel() == 0 || high.numel() > most) continue;
      if ((elements += high.numel()) > kMostElements) break;
      const at::Tensor values = high.to(at::kDouble);
      measured.push_back(
          {i, values, kJump * at::sqrt(values.square().mean()), at::zeros_like(values), at::zeros_like(values)});
      measured.back().Add(expected->nudged[i]);
    }
    for (; !measured.empty() && nudges < kNudges && turns.Take(problem_.double_seconds); ++nudges) {
      const auto moved = reference_.Prepare(Moved(leaves, kNudge), Mode::kDouble);
      moved->Run();
      const std::vector<at::Tensor> outputs = moved->Outputs();
      for (Responses& one : measured) {
        if (one.output < outputs.size() && outputs[one.output].sizes() == one.high.sizes()) {
          one.Add(outputs[one.output]);
        }
      }
    }
  } catch (const std::exception&) {  // no memory for another one: those that there are
  }
  if (nudges == 1) return false;
  try {
    for (const Responses& one : measured) {
      at::Tensor& nudged = expected->nudged[one.output];
      const at::Tensor first = (nudged.to(at::kDouble) - one.high).abs();
      nudged = at::where(first.le(one.jump), one.high + (one.squares / one.count.clamp_min(1)).sqrt(),
                         nudged.to(at::kDouble));
      if (one.output >= expected->jumps.size()) continue;
      const double share = one.jumped / nudges / static_cast<double>(one.high.numel());
      expected->jumps[one.output] = std::max(expected->jumps[one.output], share);
    }
  } catch (const std::exception&) {  // no memory: the others stay as the one nudge shows them
  }
  return true;
}

// By chance a single number comes out as exact as if it were known, while another order of the same operations is off
// by all that rounding does; of hundreds of elements some are off by as much. Inputs beside these show other errors of
// the same size: of each element the third largest of twelve, so that a threshold crossed in two of them says nothing.
void Expecting::AddErrors(const std::vector<Leaf>& leaves, Expected* expected) {
  constexpr int kErrors = 12;           // with the first
  constexpr double kMostSeconds = 0.1;  // for all of them
  constexpr std::size_t kShare = 5;     // one run in so many is left out, and fewer runs than that say nothing
  const Choosing choosing(chosen_);
  std::vector<std::size_t> few;
  for (std::size_t i = 0; i < expected->high.size(); ++i) {
    const at::Tensor& plain = expected->plain[i];
    if (Fractions(plain) && !plain.is_complex() && plain.numel() > 0 && plain.numel() <= kFew) few.push_back(i);
  }
  if (few.empty()) return;
  std::vector<std::vector<at::Tensor>> errors(expected->high.size());
  const auto add = [&](const std::vector<at::Tensor>& plain, const std::vector<at::Tensor>& high) {
    for (std::size_t i : few) {
      if (i >= plain.size() || i >= high.size() || plain[i].sizes() != high[i].sizes()) continue;
      errors[i].push_back((plain[i].to(at::kDouble) - high[i].to(at::kDouble)).abs());
    }
  };
  add(expected->plain, expected->high);
  // Inputs beside the given ones are made in float64, too.
  const double each = problem_.draw_seconds + problem_.reference_seconds + 2 * problem_.double_seconds;
  Turns turns(kMostSeconds);
  for (int more = 1; more < kErrors && turns.Take(each); ++more) {
    try {
      const std::vector<Leaf> moved = Neighbours(leaves, &secret_);
      const auto written = reference_.Prepare(moved, Mode::kEager), exact = reference_.Prepare(moved, Mode::kDouble);
      written->Run();
      exact->Run();
      add(written->Outputs(), exact->Outputs());
    } catch (const std::exception&) {  // the reference refuses them, or there is no memory: those that there are
    }
  }
  expected->errors.assign(expected->plain.size(), 0);
  for (std::size_t i : few) {
    const std::size_t runs = errors[i].size();
    if (runs < kShare) continue;
    const at::Tensor sorted = std::get<0>(at::stack(errors[i]).sort(0));  // NaN last
    const at::Tensor typical = sorted.select(0, static_cast<std::int64_t>(runs - 1 - runs / kShare)).reshape({-1});
    const at::Tensor known = typical.masked_select(at::isfinite(typical));
    if (known.numel() > 0) expected->errors[i] = std::sqrt(known.square().mean().item<double>());
  }
}

// Thresholds that one output in many crosses, while honest programs differ by a few roundings and thousands of outputs
// are compared: inputs are moved until some are seen to cross. What is bent, not broken, may look so for large moves,
// so one an eighth as large, in the same directions, bounds the count: four elements that chance let it miss.
void Expecting::CountJumps(const std::vector<Leaf>& leaves, Expected* expected) {
  // Further where there are few elements.
  constexpr std::int64_t kFew = 4096;
  bool few = true;
  for (const at::Tensor& output : expected->plain) few = few && output.numel() <= kFew;
  const double kFar = few ? 0x1p-8 : 0x1p-11, kHalfway = kFar / 8;
  constexpr double kMissed = 4;
  constexpr double kMostSeconds = 0.5;  // of one evaluation in float64
  if (expected->nudged.empty() || problem_.continuous || problem_.double_seconds > kMostSeconds) return;
  const std::uint64_t directions = SecretSeed();
  const auto moved = [&](double size) {
    Random same(directions);
    const auto call = reference_.Prepare(Nudge(leaves, problem_.NudgeOf(size), &same, problem_.Still()), Mode::kDouble);
    call->Run();
    return call->Outputs();
  };
  const auto count = [&](const std::vector<at::Tensor>& outputs, double size, const std::vector<at::Tensor>& less) {
    std::vector<double> jumps(expected->high.size(), 0);
    for (std::size_t i = 0; i < jumps.size() && i < outputs.size(); ++i) {
      jumps[i] = JumpsBeyond(expected->high[i], expected->nudged[i], outputs[i], size,
                             i < less.size() ? less[i] : at::Tensor());
    }
    return jumps;
  };
  const auto none = [](const std::vector<double>& jumps) {
    return std::all_of(jumps.begin(), jumps.end(), [](double one) { return one == 0; });
  };
  try {
    const std::vector<at::Tensor> outputs = moved(kFar);
    std::vector<double> far = count(outputs, kFar, {}), halfway;
    if (!none(far)) {
      const std::vector<at::Tensor> less = moved(kHalfway);
      far = count(outputs, kFar, less);
      halfway = count(less, kHalfway, {});
    }
    if (none(far)) {
      expected->jumps.assign(far.size(), 0);
      return;
    }
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
// would be WRONG. Nudged until nearly all have shown, as far as there is time. Where no arithmetic comes before the
// choice, keys are moved by so little that only equal ones change places.
void Expecting::CountTies(const std::vector<Leaf>& leaves, Expected* expected) {
  if (expected->wide.empty()) return;
  TurnOver(Exactness::kRounded, leaves, kNudge, expected);
  TurnOver(Exactness::kChosen, leaves, kPartingNudge, expected);
}

void Expecting::TurnOver(Exactness which, const std::vector<Leaf>& leaves, double nudge, Expected* expected) {
  constexpr int kMostTurns = 24;        // show 999 of 1,000 ties of two
  constexpr double kMostSeconds = 0.2;  // for all of them
  std::vector<std::size_t> outputs;
  for (std::size_t i = 0; i < expected->plain.size(); ++i) {
    if (!Fractions(expected->plain[i]) && problem_.ExactnessOf(i) == which) outputs.push_back(i);
  }
  if (outputs.empty()) return;
  Turns left(kMostSeconds);
  std::vector<at::Tensor> masks(expected->high.size());
  int turns = 0;
  try {
    const auto add = [&](const std::vector<at::Tensor>& moved) {
      for (std::size_t i : outputs) {
        const at::Tensor turned = moved[i].ne(expected->high[i]);
        masks[i] = masks[i].defined() ? masks[i].logical_or(turned) : turned;
      }
      ++turns;
    };
    if (which == Exactness::kRounded) add(expected->nudged);
    while (turns < kMostTurns && (turns == 0 || left.Take(problem_.double_seconds))) {
      auto call = reference_.Prepare(Moved(leaves, nudge), Mode::kDouble);
      call->Run();
      const std::vector<at::Tensor> moved = call->Outputs();
      if (moved.size() != masks.size()) return;
      for (std::size_t i : outputs) {
        if (moved[i].sizes() != expected->high[i].sizes()) return;
      }
      add(moved);
      ops_.Synchronize();  // what is only queued has taken no time yet
    }
  } catch (const std::exception&) {
    if (turns == 0) return;  // no memory for another one: what was counted so far
  }
  expected->turned.resize(expected->plain.size());
  for (std::size_t i : outputs) expected->turned[i] = {masks[i], turns};
}

at::Tensor Expecting::ComesOut(const std::vector<Leaf>& leaves, std::size_t output, const at::Tensor& positions,
                               const at::Tensor& got, const at::Tensor& allowed, double size, Turns* turns,
                               bool between, int* nudges) {
  const at::Tensor wanted = got.reshape({-1}).index_select(0, positions).to(at::kDouble);
  at::Tensor reached = at::zeros_like(wanted, at::kBool), below = reached.clone(), above = reached.clone();
  try {
    for (int nudge = 0; nudge < kMostNudges && turns->Take(problem_.double_seconds); ++nudge) {
      const auto call = reference_.Prepare(Moved(leaves, size), Mode::kDouble);
      call->Run();
      const std::vector<at::Tensor> outputs = call->Outputs();
      if (output >= outputs.size() || outputs[output].sizes() != got.sizes() || outputs[output].is_complex()) break;
      const at::Tensor moved = outputs[output].reshape({-1}).index_select(0, positions).to(at::kDouble);
      reached.logical_or_(Fractions(got) ? Alike(moved, wanted, allowed, got.scalar_type())
                                         : (moved - wanted).abs().le(allowed));
      if (between) {
        below.logical_or_(moved.le(wanted));
        above.logical_or_(moved.ge(wanted));
        reached.logical_or_(below.logical_and(above));
      }
      if (nudges != nullptr) ++*nudges;
      if (reached.all().item<bool>()) break;
    }
  } catch (const std::exception&) {  // no memory for another one: those that there were
  }
  return reached;
}

}  // namespace grove::judge
