// What the passes of Compare do with one element: the same on a CPU (compare.cc) and on a GPU (compare_cuda.cu), so
// that both come to the same figures but for the order of sums.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "worker/judge/anywhere.h"
#include "worker/judge/compare.h"

namespace grove::judge {

inline constexpr double kInfinite = std::numeric_limits<double>::infinity();
inline constexpr double kLeastNormal = std::numeric_limits<double>::min();

// One element of all arrays, as float64 (of a complex number: one part). `high` and `nudged` are read only where they
// are there.
struct ComparedElement {
  double reference = 0, got = 0, high = 0, nudged = 0;
};

// What the third pass asks of every element.
struct ErrorPass {
  ScaledThresholds limits{};
  bool has_high = false;
  bool absolute = false;  // RuleMode::kAbsoluteRelative, by:
  double atol = 0, rtol = 0;
};

ErrorPass PassFor(const ComparisonInput& input, const Rule& rule, const ScaledThresholds& limits);

// Criterion 4: sums of squares over a block of neighbours.
struct BlockTally {
  std::int64_t elements = 0;
  double errors = 0, magnitudes = 0, responses = 0, noise = 0;
};

GROVE_ANYWHERE inline double Larger(double a, double b) { return a < b ? b : a; }

GROVE_ANYWHERE inline void TallyMagnitude(const ComparedElement& element, bool has_high, double bound, double tiny,
                                          MagnitudeTally* tally) {
  if (!std::isfinite(element.reference)) return;
  double expected = element.reference;
  if (has_high && std::isfinite(element.high)) {
    expected = element.high;
    const double error = std::fabs(element.reference - expected);
    tally->noise_squares += error * error;
    tally->noise_max = Larger(tally->noise_max, error);
    if (error > bound * std::fabs(expected) && std::fabs(expected) >= tiny) ++tally->outliers;
  }
  tally->squares += expected * expected;
  ++tally->finite;
}

// How responses are looked at: what is a jump, and how many times larger a response makes its element uncertain.
struct ResponsePass {
  double jump = 0, uncertain = 0;
};

ResponsePass ResponsesFor(const ComparisonInput& input, const Rule& rule, const MagnitudeTally& magnitude);

// Only where there is `high`.
GROVE_ANYWHERE inline void TallyResponse(const ComparedElement& element, bool has_nudged, const ResponsePass& pass,
                                         ResponseTally* tally) {
  const double error = std::fabs(element.reference - element.high);
  if (!std::isfinite(error)) return;
  if (error > pass.jump) {
    ++tally->own_jumps;
  } else {
    tally->noise_squares += error * error;
    tally->noise_max = Larger(tally->noise_max, error);
  }
  const double moved = std::fabs(element.nudged - element.high);
  if (!has_nudged || !std::isfinite(moved)) return;
  if (moved > pass.jump) {
    ++tally->jumps;
    tally->jump_squares += moved * moved;
  } else {
    tally->squares += moved * moved;
    tally->max = Larger(tally->max, moved);
    if (moved * pass.uncertain > std::fabs(element.high)) ++tally->uncertain;
  }
}

// Position `i`, in rising order for one tally: of elements that exceed what is allowed by as much the first is kept.
GROVE_ANYWHERE inline void TallyError(std::int64_t i, const ComparedElement& element, const ErrorPass& pass,
                                      ErrorTally* tally, BlockTally* block) {
  const double reference = element.reference, got = element.got;
  if (!std::isfinite(reference) || !std::isfinite(got)) {
    // NaN meets NaN, an infinity the same infinity.
    if (std::isnan(reference) ? std::isnan(got) : reference == got) return;
    ++tally->special;
    if (tally->excess < kInfinite) {
      tally->excess = kInfinite;
      tally->worst = i;
      tally->expected = reference;
      tally->got = got;
      tally->error = std::fabs(got - reference);
      tally->allowed = 0;
    }
    return;
  }
  const ScaledThresholds& limits = pass.limits;
  double expected = reference;
  const double plain = std::fabs(got - reference), size = std::fabs(reference);
  if (plain > 1e-4 + 1e-4 * size) ++tally->beyond_1e4;
  if (plain > 1e-2 + 1e-2 * size) ++tally->beyond_1e2;
  tally->max_abs = Larger(tally->max_abs, plain);
  if (size > 0) tally->max_rel = Larger(tally->max_rel, plain / size);
  if (pass.has_high && std::isfinite(element.high)) expected = element.high;
  double error = std::fabs(got - expected);
  tally->squares += error * error;
  if (error > limits.relative_bound * std::fabs(expected) && std::fabs(expected) >= limits.tiny &&
      error > limits.outlier_floor) {
    ++tally->outliers;
  }
  double allowed = limits.element + limits.slack * std::fabs(expected);
  if (error > allowed) {
    ++tally->beyond;
    tally->beyond_squares += error * error;
  } else if (std::isfinite(element.nudged)) {
    const double moved = std::fabs(element.nudged - element.high), noise = reference - expected;
    if (moved > limits.jump && error <= limits.roundings * moved) tally->steep_squares += error * error;
    if (limits.block > 0) {
      ++block->elements;
      block->errors += error * error;
      block->magnitudes += expected * expected;
      block->responses += moved * moved;
      block->noise += noise * noise;
    }
  }
  if (pass.absolute) {
    error = plain;
    allowed = pass.atol + pass.rtol * size;
    expected = reference;
    if (error > allowed) ++tally->beyond_given;
  }
  if (!(error > 0) || !(tally->excess < kInfinite)) return;
  const double excess = error / Larger(allowed, kLeastNormal);
  if (excess > tally->excess) {
    tally->excess = excess;
    tally->worst = i;
    tally->expected = expected;
    tally->got = got;
    tally->error = error;
    tally->allowed = allowed;
  }
}

// Whether errors of a block are no more than rounding explains.
GROVE_ANYWHERE inline bool BlockOk(const ScaledThresholds& limits, const BlockTally& block) {
  if (block.elements == 0) return true;
  const double n = static_cast<double>(block.elements);
  const double scale = Larger(std::sqrt(block.magnitudes / n), std::sqrt(block.responses / n) / limits.nudge);
  const double allowed =
      Larger(Larger(limits.block * scale, kBlockNoise * std::sqrt(block.noise / n)), limits.block_floor);
  return std::sqrt(block.errors / n) <= allowed;
}

GROVE_ANYWHERE inline void Merge(const MagnitudeTally& other, MagnitudeTally* tally) {
  tally->finite += other.finite;
  tally->outliers += other.outliers;
  tally->squares += other.squares;
  tally->noise_squares += other.noise_squares;
  tally->noise_max = Larger(tally->noise_max, other.noise_max);
}

GROVE_ANYWHERE inline void Merge(const ResponseTally& other, ResponseTally* tally) {
  tally->jumps += other.jumps;
  tally->squares += other.squares;
  tally->jump_squares += other.jump_squares;
  tally->max = Larger(tally->max, other.max);
  tally->uncertain += other.uncertain;
  tally->own_jumps += other.own_jumps;
  tally->noise_squares += other.noise_squares;
  tally->noise_max = Larger(tally->noise_max, other.noise_max);
}

GROVE_ANYWHERE inline void Merge(const ErrorTally& other, ErrorTally* tally) {
  tally->squares += other.squares;
  tally->beyond_squares += other.beyond_squares;
  tally->steep_squares += other.steep_squares;
  tally->max_abs = Larger(tally->max_abs, other.max_abs);
  tally->max_rel = Larger(tally->max_rel, other.max_rel);
  tally->blocks += other.blocks;
  tally->special += other.special;
  tally->beyond += other.beyond;
  tally->beyond_1e4 += other.beyond_1e4;
  tally->beyond_1e2 += other.beyond_1e2;
  tally->beyond_given += other.beyond_given;
  tally->outliers += other.outliers;
  if (other.worst < 0) return;
  if (tally->worst < 0 || other.excess > tally->excess ||
      (!(tally->excess > other.excess) && other.worst < tally->worst)) {
    tally->excess = other.excess;
    tally->worst = other.worst;
    tally->expected = other.expected;
    tally->got = other.got;
    tally->error = other.error;
    tally->allowed = other.allowed;
  }
}

}  // namespace grove::judge
