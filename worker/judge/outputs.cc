#include "worker/judge/outputs.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <utility>

#include "worker/judge/compare.h"
#include "worker/judge/compare_tensors.h"
#include "worker/judge/tensor_type.h"

namespace grove::judge {
namespace {

// Of one output, compared at once: what is expected is held until then, on a CPU also stacked.
constexpr std::size_t kMostBytesCpu = std::size_t{64} << 20, kMostBytesCuda = std::size_t{1} << 30;

// Errors no larger than others that were right say nothing of rows that are small, or were not written. So of one run
// in so many one output is compared by all criteria: of more runs where an evaluation in float64, of which that takes
// several, is short.
constexpr std::uint64_t kWholeOften = 3, kWholeSeldom = 16;
constexpr double kLittle = 0.005, kMost = 0.1;  // seconds of one such evaluation; where it takes more, none
// And of each run one output is asked for the share of its elements that are off by so much of themselves: by what the
// full rule counts (not of half types, which rounding alone takes that far), and by more, for where that is allowed.
// Where either is more than this, and than twice what was right before, all criteria decide.
constexpr std::int64_t kMostAsked = std::int64_t{1} << 24;
constexpr double kOffItself = 1.0 / 16, kShareOff = 0.01, kMoreOff = 2;
constexpr double kMostOnce = 0.5;  // seconds of an evaluation; where it takes more, the reference as written decides

// As RowErrorsOnGpu, for each row of [rows, ...] on a CPU.
std::vector<RowError> RowErrors(const at::Tensor& got_rows, const at::Tensor& expected_rows) {
  const std::int64_t rows = expected_rows.size(0);
  auto flat = [rows](const at::Tensor& tensor) {
    const at::Tensor real = tensor.is_complex() ? at::view_as_real(tensor) : tensor;
    return real.reshape({rows, -1});
  };
  at::Tensor got = flat(got_rows), expected = flat(expected_rows);
  at::Tensor largest, rms;
  // In float64, and not by what stands for infinity: squares of float32 overflow, and beside 3e38 nothing is an error.
  const auto root = [](const at::Tensor& values) {
    return at::linalg_vector_norm(values, 2, at::IntArrayRef{1}, false, at::kDouble) /
           std::sqrt(static_cast<double>(values.size(1)));
  };
  if (expected.numel() == 0) {
    largest = rms = at::zeros({rows}, at::kDouble);
  } else if (!expected.is_floating_point()) {
    largest = rms = got.ne(expected).any(1).to(at::kDouble);
  } else {
    if (IsHalf(expected.scalar_type())) {
      got = got.to(at::kFloat);
      expected = expected.to(at::kFloat);
    }
    const at::Tensor equal = got.eq(expected).logical_or_(got.isnan().logical_and_(expected.isnan()));
    const at::Tensor error = (got - expected).abs_().masked_fill_(equal, 0);
    const at::Tensor numbers = expected.abs().lt(Extreme(expected_rows.scalar_type()));  // of NaN: false
    const at::Tensor scale = root(expected.masked_fill(numbers.logical_not(), 0));
    const at::Tensor unit = scale.masked_fill(scale.eq(0), 1);
    largest = error.amax(1).to(at::kDouble) / unit;
    rms = root(error) / unit;
  }
  largest = largest.to(at::kDouble).contiguous();
  rms = rms.to(at::kDouble).contiguous();
  std::vector<RowError> errors;
  for (std::int64_t i = 0; i < rows; ++i) errors.push_back({largest.data_ptr<double>()[i], rms.data_ptr<double>()[i]});
  return errors;
}

// The shares of an output's elements that are off by kRelativeBound and by kOffItself of themselves. What is below the
// type's normal numbers, or stands for infinity, is not counted.
Outputs::Off SharesOff(const at::Tensor& got_output, const at::Tensor& expected_output) {
  if (!Fractions(expected_output) || expected_output.numel() == 0) return {};
  const at::ScalarType type = expected_output.scalar_type();
  const bool widen = IsHalf(type);
  const at::Tensor got = widen ? got_output.to(at::kFloat) : got_output;
  const at::Tensor expected = widen ? expected_output.to(at::kFloat) : expected_output;
  const at::Tensor size = expected.abs();  // of a complex number, too
  const double least = type == at::kHalf ? 0x1p-14 : size.scalar_type() == at::kDouble ? 0x1p-1022 : 0x1p-126;
  const at::Tensor error = (got - expected).abs();
  const at::Tensor counted = size.ge(least).logical_and_(size.lt(Extreme(type)));
  const auto share = [&](double of_itself) {
    return error.gt(size * of_itself).logical_and_(counted).sum().item<double>() / static_cast<double>(size.numel());
  };
  return {widen ? 0 : share(kRelativeBound), share(kOffItself)};
}

}  // namespace

bool Outputs::VerifyOne(CandidateSide* side, std::size_t set, const std::vector<at::Tensor>& expected, bool whole) {
  Expected wanted;
  const auto begin = std::chrono::steady_clock::now();
  if (whole) {
    wanted = check_.Compute(values_.leaves(set), true, true);
  } else {
    wanted.plain = expected;
  }
  Slot& slot = side->arena().at(set);
  const bool excused =
      check_.VerifyFairly(side->conversation(), &side->arena(), &slot, side->reply(), check_.Take(slot, wanted), wanted,
                          values_.leaves(set), check_.trials() + 1, Check::Drawn::kTimed);
  if (whole) whole_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return excused;
}

void Outputs::CountJumps(bool verified) {
  for (std::size_t o = 0; o < jumps_.size(); ++o) {
    const Check::Jumps last = check_.JumpsOf(o);
    jumps_[o].expected += last.expected;
    if (!verified || last.excused == 0) continue;
    jumps_[o].excused += last.excused;
    // What jumps hangs together where values nearly cancel (all of one matrix): the most of one set, which Check has
    // let pass by themselves, are not counted.
    most_jumps_[o] = std::max(most_jumps_[o], last.excused);
    if (static_cast<double>(jumps_[o].excused - most_jumps_[o]) <= MostJumps(jumps_[o].expected)) continue;
    char text[240];
    std::snprintf(text, sizeof text,
                  "over all timed outputs %lld elements are on the other side of a threshold or another index, and "
                  "rounding explains %.3g",
                  static_cast<long long>(jumps_[o].excused), jumps_[o].expected);
    throw Verdict{"VERDICT_WRONG", text, {}};
  }
}

void Outputs::Verify(CandidateSide* side, const std::vector<std::size_t>& sets,
                     const std::function<std::vector<at::Tensor>(std::size_t)>& expected) {
  whole_seconds_ = 0;
  if (sets.empty()) return;
  check_.CountTimed(sets.size());
  side->MustHaveKept(sets);
  Arena& arena = side->arena();
  const bool intact = arena.InputsIntact(sets, values_.data()) &&
                      arena.ParametersIntact(problem_.reference->Parameters()) && arena.OutputGuardsIntact(sets);
  const Slot& shape = arena.at(sets[0]);
  std::size_t largest = 1;
  for (const Place& place : shape.out.places) largest = std::max(largest, place.bytes);
  const std::size_t most = cuda_ ? kMostBytesCuda : kMostBytesCpu;
  const std::size_t rows = std::max<std::size_t>(most / largest, 1);
  for (std::size_t begin = 0; begin < sets.size(); begin += rows) {
    const std::size_t count = std::min(rows, sets.size() - begin);
    std::vector<std::vector<at::Tensor>> wanted;
    for (std::size_t i = 0; i < count; ++i) {
      wanted.push_back(expected(sets[begin + i]));
      for (at::Tensor& tensor : wanted.back()) {
        if (cuda_ && !tensor.is_cuda()) tensor = tensor.cuda();
      }
      arena.at(sets[begin + i]).MustFit(wanted.back());
    }
    // The first of all, and where something was written that must not be: one by one, and Check says what it was.
    std::vector<bool> look(count, !intact);
    if (passed_.empty()) look[0] = true;
    std::size_t whole = count;
    const double seconds = problem_.double_seconds;
    if (begin == 0 && seconds >= 0 && seconds <= kMost &&
        random_.Below(seconds <= kLittle ? kWholeOften : kWholeSeldom) == 0) {
      whole = random_.Below(count);
      look[whole] = true;
    }
    const std::size_t outputs = wanted[0].size();
    passed_.resize(std::max(passed_.size(), outputs));
    off_passed_.resize(passed_.size());
    const std::size_t small = begin == 0 ? random_.Below(count) : count;
    jumps_.resize(passed_.size());
    most_jumps_.resize(passed_.size());
    std::vector<ComparedRow> compared;
    for (std::size_t o = 0; o < outputs; ++o) {
      for (std::size_t i = 0; i < count; ++i) {
        const Slot& slot = arena.at(sets[begin + i]);
        const Place& place = slot.out.places.at(o);
        compared.push_back({slot.Output(o), wanted[i][o].data_ptr(), wanted[i][o].numel(), place.type});
      }
    }
    std::vector<RowError> flat;
    if (cuda_) {
      flat = RowErrorsOnGpu(compared);
    } else {
      for (std::size_t o = 0; o < outputs; ++o) {
        std::vector<at::Tensor> got_rows, wanted_rows;
        for (std::size_t i = 0; i < count; ++i) {
          wanted_rows.push_back(wanted[i][o]);
          got_rows.push_back(at::from_blob(const_cast<void*>(compared[o * count + i].got), wanted[i][o].sizes(),
                                           wanted[i][o].options().requires_grad(false)));
        }
        const std::vector<RowError> row = RowErrors(at::stack(got_rows), at::stack(wanted_rows));
        flat.insert(flat.end(), row.begin(), row.end());
      }
    }
    const auto error_of = [&](std::size_t o, std::size_t i) -> const RowError& { return flat[o * count + i]; };
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t o = 0; o < outputs; ++o) {
        const RowError& error = error_of(o, i);
        if (!(error.largest <= passed_[o].largest) || !(error.rms <= passed_[o].rms)) look[i] = true;
      }
      std::vector<Off> off;
      bool doubtful = false;
      for (std::size_t o = 0; i == small && o < outputs; ++o) {
        // Of large outputs a block, for the memory that it takes.
        const at::Tensor all = wanted[i][o].reshape({-1});
        const std::int64_t size = std::min(all.numel(), kMostAsked);
        const auto from = static_cast<std::int64_t>(random_.Below(static_cast<std::uint64_t>(all.numel() - size) + 1));
        auto* got = static_cast<char*>(const_cast<void*>(compared[o * count + i].got));
        off.push_back(SharesOff(at::from_blob(got + from * static_cast<std::int64_t>(all.element_size()), {size},
                                              all.options().requires_grad(false)),
                                all.narrow(0, from, size)));
        const auto more = [](double now, double passed) { return now > std::max(kShareOff, kMoreOff * passed); };
        doubtful = doubtful || more(off[o].slightly, off_passed_[o].slightly) || more(off[o].much, off_passed_[o].much);
      }
      look[i] = look[i] || doubtful;
      const bool at_once = doubtful && seconds >= 0 && seconds <= kMostOnce;
      const bool excused = look[i] && VerifyOne(side, sets[begin + i], wanted[i], i == whole || at_once);
      for (std::size_t o = 0; look[i] && o < off.size(); ++o) {
        off_passed_[o].slightly = std::max(off_passed_[o].slightly, off[o].slightly);
        off_passed_[o].much = std::max(off_passed_[o].much, off[o].much);
      }
      CountJumps(look[i]);
      if (!look[i] || excused) continue;
      for (std::size_t o = 0; o < outputs; ++o) {
        // What is no number stays a matter for Check.
        const RowError& error = error_of(o, i);
        if (!std::isfinite(error.largest) || !std::isfinite(error.rms)) continue;
        passed_[o].largest = std::max(passed_[o].largest, error.largest);
        passed_[o].rms = std::max(passed_[o].rms, error.rms);
      }
    }
  }
}

}  // namespace grove::judge
