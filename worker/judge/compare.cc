#include "worker/judge/compare.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "worker/judge/compare_passes.h"

namespace grove::judge {
namespace {

template <typename T>
T LoadAs(const void* data, std::int64_t i) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
  return value;
}

// One floating element (of a complex number: one part) as double.
template <int kBits, bool kBfloat>
double LoadReal(const void* data, std::int64_t i) {
  if constexpr (kBits == 64) {
    return LoadAs<double>(data, i);
  } else if constexpr (kBits == 32) {
    return static_cast<double>(LoadAs<float>(data, i));
  } else if constexpr (kBfloat) {
    return static_cast<double>(BfloatToFloat(LoadAs<std::uint16_t>(data, i)));
  } else {
    return static_cast<double>(HalfToFloat(LoadAs<std::uint16_t>(data, i)));
  }
}

// The type in which the work is done.
wire::DType WorkType(const wire::DType& type, const ReferenceNoise& noise) {
  static const wire::DType wide = wire::FindDType("float64").value(),
                           wide_complex = wire::FindDType("complex128").value();
  if (noise.in_double) return type.kind == wire::DTypeKind::kComplex ? wide_complex : wide;
  const bool single = noise.single || (noise.known && noise.rms > kMostOfDouble * std::max(noise.condition, 1.0));
  if (!single) return type;
  static const wire::DType real = wire::FindDType("float32").value(), complex = wire::FindDType("complex64").value();
  if (type.kind == wire::DTypeKind::kFloat && type.bits == 64) return real;
  if (type.kind == wire::DTypeKind::kComplex && type.bits == 128) return complex;
  return type;
}

// Of so many elements a nudge shows what rounding does to them.
constexpr double kTelling = 256;

// How many of n may jump where a share is expected to: never most of them.
double JumpCount(double share, double n) {
  const double mean = share * n;
  return mean > 0 ? std::min(MostJumps(mean), kMostJumps * n) : 0;
}

// An honest program may decide all ties otherwise; half as many again for draws that have more.
constexpr double kTieFactor = 1.5;

// The share of elements that jump for an honest program: the nudge is one rounding, the work makes some.
double JumpsAllowed(const wire::DType& type, double reduction, double unstable, const ReferenceNoise& noise,
                    const Rule& rule) {
  const wire::DType work = noise.in_double ? WorkType(type, noise) : type;
  return kNoiseFactor * unstable * std::max(WorkError(work, reduction, rule) / noise.Nudge(), 1.0);
}

template <int kBits, bool kBfloat>
Comparison CompareReal(const ComparisonInput& input, const Rule& rule) {
  const int parts = input.type.kind == wire::DTypeKind::kComplex ? 2 : 1;
  const std::int64_t n = input.elements * parts;
  const bool has_high = input.high != nullptr, has_nudged = has_high && input.nudged != nullptr;
  const auto load = [&input, has_high, has_nudged](std::int64_t i) {
    ComparedElement element;
    element.reference = LoadReal<kBits, kBfloat>(input.reference, i);
    if (input.got != nullptr) element.got = LoadReal<kBits, kBfloat>(input.got, i);
    if (has_high) element.high = input.high[i];
    if (has_nudged) element.nudged = input.nudged[i];
    return element;
  };

  const double bound = RelativeBound(rule), tiny = TinyOf(input.type);
  MagnitudeTally magnitude;
  for (std::int64_t i = 0; i < n; ++i) TallyMagnitude(load(i), has_high, bound, tiny, &magnitude);
  ResponseTally response;
  if (has_high) {
    const ResponsePass pass = ResponsesFor(input, rule, magnitude);
    for (std::int64_t i = 0; i < n; ++i) TallyResponse(load(i), has_nudged, pass, &response);
  }
  Comparison result;
  const ScaledThresholds limits = LimitsFor(input, rule, magnitude, response, &result);
  if (input.got == nullptr) return result;

  const ErrorPass pass = PassFor(input, rule, limits);
  ErrorTally errors;
  for (std::int64_t begin = 0; begin < n; begin += kNeighbours) {
    BlockTally block;
    for (std::int64_t i = begin; i < std::min(begin + kNeighbours, n); ++i)
      TallyError(i, load(i), pass, &errors, &block);
    if (limits.block > 0 && !BlockOk(limits, block)) ++errors.blocks;
  }
  Decide(input, rule, magnitude, limits, errors, &result);
  return result;
}

template <typename T>
Comparison CompareExact(const ComparisonInput& input, const Rule& rule) {
  Comparison result;
  result.elements = input.elements;
  double sum_squares = 0, error_squares = 0;
  std::int64_t unturned = 0;  // mismatched, and no nudge turned them over
  for (std::int64_t i = 0; i < input.elements; ++i) {
    const T expected = LoadAs<T>(input.reference, i), got = LoadAs<T>(input.got, i);
    sum_squares += static_cast<double>(expected) * static_cast<double>(expected);
    if (expected == got) continue;
    ++result.mismatched;
    unturned += input.turned != nullptr && !input.turned[i];
    const double error = std::fabs(static_cast<double>(got) - static_cast<double>(expected));
    error_squares += error * error;
    if (result.worst < 0 || error > result.error) {
      result.worst = i;
      result.expected = static_cast<double>(expected);
      result.got = static_cast<double>(got);
      result.error = error;
    }
    result.max_abs_error = std::max(result.max_abs_error, error);
    if (expected != 0)
      result.max_rel_error = std::max(result.max_rel_error, error / std::fabs(static_cast<double>(expected)));
  }
  result.scaled_error = sum_squares > 0 ? std::sqrt(error_squares / sum_squares) : std::sqrt(error_squares);
  // An index or a flag that rounding decides (the largest of sums) may come out otherwise, as often as it does for the
  // reference itself.
  // Where it is known which elements a nudge turns over, ties are among those.
  const double n = static_cast<double>(input.elements), ties = kTieFactor * input.noise.ties;
  const double jumps = JumpsAllowed(input.type, input.reduction, input.noise.unstable, input.noise, rule);
  const bool among_turned =
      input.turned == nullptr || static_cast<double>(unturned) <= JumpCount(jumps + ties * TiesUnseen(input.turns), n);
  result.jumps_expected = (jumps + ties) * n;
  result.undecided = rule.mode == RuleMode::kScaled && jumps + ties > kMostJumps;
  result.noise = input.noise;
  result.passes_1e4 = result.passes_1e2 = result.mismatched == 0;
  result.passes_scaled = static_cast<double>(result.mismatched) <= JumpCount(jumps + ties, n) && among_turned;
  result.ok = rule.mode == RuleMode::kScaled ? result.passes_scaled : result.mismatched == 0;
  result.excused = result.ok && result.mismatched > 0;
  if (result.excused) result.jumps = result.mismatched;
  if (!result.ok) result.why = "values of an exact type differ";
  return result;
}

}  // namespace

double TiesUnseen(int turns) {
  constexpr double kTurned = 0.25;  // of ties, by one nudge
  return std::pow(1 - kTurned, turns);
}

double TieShare(double turned, int turns, double unstable) {
  return turns > 0 ? std::max(0.0, turned - turns * unstable) / (1 - TiesUnseen(turns)) : 0;
}

double ReferenceNoise::Nudge() const { return in_double ? kNudge * kFiner : kNudge; }

double MostJumps(double expected) { return expected > 0 ? expected + 4 * std::sqrt(expected) + 3 : 0; }

ScaledConstants ConstantsFor(const wire::DType& type) {
  const int bits = type.kind == wire::DTypeKind::kComplex ? type.bits / 2 : type.bits;
  const double single = 0x1p-23;  // sums of half types are made in float32
  if (type.kind == wire::DTypeKind::kBfloat) return {0x1p-7, 4 * 0x1p-7, 1 * 0x1p-7, 8 * single, single / 3};
  if (type.kind == wire::DTypeKind::kFloat && bits == 16) {
    return {0x1p-10, 4 * 0x1p-10, 1 * 0x1p-10, 8 * single, single / 3};
  }
  if (bits == 64 && type.kind != wire::DTypeKind::kInt)
    return {0x1p-52, 64 * 0x1p-52, 0, 16 * 0x1p-52, 0x1p-52 * 2 / 3};
  return {single, 64 * single, 0, 8 * single, single / 3};
}

double FewElements(double elements) {
  // The square of the rms of n normal errors is a chi-square variable over n. This is its quantile at 1 - 10^-6, by
  // E. B. Wilson and M. M. Hilferty's approximation (PNAS 17, 1931), which is a little above it for small n.
  constexpr double kQuantile = 4.753;
  // What rms_per_root allows over what one accumulator makes of terms of either sign: 1/3 of a rounding over 0.15.
  // (Of positive terms it makes 0.11 to 0.13.)
  constexpr double kMargin = 2.2;
  const double part = 2 / (9 * std::max(elements, 1.0)), root = 1 - part + kQuantile * std::sqrt(part);
  return std::max(1.0, std::sqrt(root * root * root) / kMargin);
}

double WorkError(const wire::DType& type, double reduction, const Rule& rule, double few) {
  const ScaledConstants constants = ConstantsFor(type);
  const double grown = few * constants.rms_per_root * std::sqrt(std::clamp(reduction, 1.0, kMaxReduction));
  double error = constants.rms_base + std::min(grown, kLeftOut / std::sqrt(std::max(reduction, 1.0)));
  // rms_base is 8 roundings (16 in float64).
  if (rule.leaning) error += constants.rms_base < 0x1p-40 ? 0x1p-25 : 0x1p-12;
  if (rule.any_order) error += constants.rms_base / 8 * std::min(reduction, kMaxStraight) / 8;
  return error;
}

double TinyOf(const wire::DType& type) {
  const int bits = type.kind == wire::DTypeKind::kComplex ? type.bits / 2 : type.bits;
  if (type.kind == wire::DTypeKind::kFloat && bits == 16) return 0x1p-14;
  return bits == 64 ? 0x1p-1022 : 0x1p-126;
}

double RelativeBound(const Rule& rule) {
  return rule.mode == RuleMode::kScaled && rule.reduced > 0 ? kReducedBound : kRelativeBound;
}

namespace {

// What may stand in the result of a rounding in reduced precision: as much of it as keeps the output within
// kMostReduced.
double ReducedRounding(const Rule& rule, double condition) {
  return std::min(rule.reduced, std::max(kMostReduced, rule.reduced) / std::max(condition, 1.0));
}

}  // namespace

double JumpSize(const MagnitudeTally& magnitude) {
  return kJump * std::sqrt(magnitude.squares / static_cast<double>(std::max<std::int64_t>(magnitude.finite, 1)));
}

// Errors of an honest element are those of its response to a nudge, times the roundings that the work makes, and as
// many times more as the worst one's are of the rms.
ResponsePass ResponsesFor(const ComparisonInput& input, const Rule& rule, const MagnitudeTally& magnitude) {
  ReferenceNoise noise = input.noise;
  // (float64 that holds float32 is known by the reference's own error.)
  noise.single = noise.single || magnitude.noise_squares > kMostOfDouble * kMostOfDouble * magnitude.squares;
  const double work = WorkError(WorkType(input.type, noise), input.reduction, rule);
  return {JumpSize(magnitude), kTailFactor * std::max(work, rule.reduced) / noise.Nudge() / RelativeBound(rule)};
}

ScaledThresholds ThresholdsFor(const wire::DType& output_type, double output_rms, double reduction, double few,
                               double uncertain, const ReferenceNoise& measured, const Rule& rule) {
  const wire::DType type = WorkType(output_type, measured);
  ReferenceNoise noise = measured;
  const bool rounds = type.bits < (type.kind == wire::DTypeKind::kComplex ? 128 : 64);  // as float64 does not
  if (noise.widened && rounds && !rule.any_order && rule.reduced == 0) {
    noise.condition = std::max(1.0, noise.condition * kFiner);
    noise.condition_max = std::max(1.0, noise.condition_max * kFiner);
  }
  const ScaledConstants constants = ConstantsFor(type);
  const double work = WorkError(type, reduction, rule, few);
  // By what is rounded once, at the end.
  const double rounded = std::max(constants.rounding, noise.in_double ? ConstantsFor(output_type).epsilon : 0);
  double relative = rounded + work * std::max(noise.condition, 1.0);
  double worst = std::max(kTailFactor * relative, work * noise.condition_max), outliers = 0;
  if (noise.known) {
    relative = std::max(relative, kNoiseFactor * noise.rms);
    worst = std::max({worst, kTailFactor * relative, kNoiseFactor * noise.max});
    outliers = kNoiseFactor * noise.relative_outliers;
  } else if (type.kind != wire::DTypeKind::kFloat || type.bits != 64) {
    relative *= kNoiseFactor;
    worst *= kNoiseFactor;
  }
  const bool smaller = rule.unit > output_rms && output_rms > 0;
  if (smaller) {
    relative = std::max(relative, std::max(work, rule.reduced) * rule.unit / output_rms);
    worst = std::max(worst, kTailFactor * relative);
  }
  ScaledThresholds limits;
  limits.jump = limits.undecided = std::numeric_limits<double>::infinity();
  const double reduced = ReducedRounding(rule, noise.condition);
  limits.nudge = noise.Nudge();
  limits.roundings = std::max(work, reduced) / limits.nudge;
  limits.slack = std::max(constants.element_slack, noise.in_double ? 4 * rounded : 0);
  if (rule.reduced > 0) {
    relative = std::max(relative, reduced * std::max(noise.condition, 1.0));
    worst = std::max({worst, kTailFactor * relative, rule.reduced * noise.condition_max});
    limits.slack = std::max(limits.slack, kTailFactor * rule.reduced);
  }
  if (rule.cap > 0) relative = std::min(relative, rule.cap);
  limits.rms = relative * output_rms;
  limits.element = worst * output_rms;
  limits.block = rule.reduced > 0 ? 0 : kBlockFactor * (rounded + work);
  // On values that the problem does not give one element may be all of its block, and carry the rounding of a constant
  // that no nudge of the inputs shows (a rotation's angle).
  if (rule.any_order && limits.block > 0) limits.block = std::max(limits.block, kNoiseFactor * relative);
  limits.block_floor = smaller ? limits.rms : limits.rms / 16;
  limits.tiny = TinyOf(noise.in_double ? output_type : type);
  // On values that the problem does not give small results come of large numbers that nearly cancel (a sigmoid by a
  // hyperbolic tangent): what the work's own rounding makes of the largest says nothing of the smallest.
  limits.outlier_floor = rule.any_order ? work * std::max(output_rms, rule.unit) : 0;
  limits.relative_bound = rule.reduced > 0 ? kReducedBound : kRelativeBound;
  limits.jumps = noise.unstable > 0 ? JumpsAllowed(type, reduction, noise.unstable, noise, rule) : 0;
  // Elements near zero are off relative to themselves in honest results too: where values are spread about zero with a
  // density of about 1 per rms, a share of (error / bound) is. Twice the tail is allowed on top of 1 %. Where a few
  // elements are far larger than all others, and so are their errors, that is no measure for these: no more are than
  // what a well-conditioned result has, and some more than their own responses say.
  const double spread = 2 * worst / limits.relative_bound,
               plain = 2 * kTailFactor * std::max(rounded + work, rule.reduced) *
                       (smaller ? rule.unit / output_rms : 1) / limits.relative_bound;
  limits.outliers =
      std::min(1.0, outliers + limits.jumps + 0.01 + std::min(spread, plain + kMoreUncertain * uncertain));
  return limits;
}

ErrorPass PassFor(const ComparisonInput& input, const Rule& rule, const ScaledThresholds& limits) {
  ErrorPass pass;
  pass.limits = limits;
  pass.has_high = input.high != nullptr;
  pass.absolute = rule.mode == RuleMode::kAbsoluteRelative;
  pass.atol = rule.atol;
  pass.rtol = rule.rtol;
  return pass;
}

namespace {

// The rms error, absolute, of a product of one term that is rounded to a half type: at its end, as is known exactly,
// and before, as often as the reference itself does and a little more.
double OneTermError(const ComparisonInput& input, double output_rms, double noise_squares, double condition) {
  const double ended = input.own_rounding * input.own_rounding, inner = std::max(noise_squares - ended, 0.0);
  // Inputs that are moved each by itself move a product of two by the root of two; what is beyond comes of terms (a
  // bias) that cancel, as what is rounded before does.
  const double cancels = std::max(condition / std::sqrt(2.0), 1.0);
  const double rounded = kInnerRounding * ConstantsFor(input.type).epsilon * cancels * output_rms;
  return std::hypot(input.own_rounding, std::max(kNoiseFactor * std::sqrt(inner), rounded));
}

}  // namespace

ScaledThresholds LimitsFor(const ComparisonInput& input, const Rule& rule, const MagnitudeTally& magnitude,
                           const ResponseTally& response, Comparison* result) {
  const double finite = static_cast<double>(std::max<std::int64_t>(magnitude.finite, 1));
  const double rms = std::sqrt(magnitude.squares / finite);
  result->elements = input.elements;
  result->rms = rms;
  result->noise = input.noise;
  if (input.high != nullptr) {
    const double scale = rms > 0 ? rms : 1;
    result->noise.known = true;
    result->noise.rms = std::sqrt(magnitude.noise_squares / finite) / scale;
    result->noise.max = magnitude.noise_max / scale;
    result->noise.relative_outliers = static_cast<double>(magnitude.outliers) / finite;
  }
  // Where the reference itself jumped, its other elements say what rounding does.
  const bool own_jumps = input.high != nullptr && response.own_jumps > 0 &&
                         static_cast<double>(response.own_jumps) <= kMostOwnJumps * finite &&
                         response.noise_max <= kOwnGap * JumpSize(magnitude);
  if (own_jumps) {
    result->noise.rms = std::sqrt(response.noise_squares / finite) / (rms > 0 ? rms : 1);
    result->noise.max = response.noise_max / (rms > 0 ? rms : 1);
  }
  const double own = input.own_error / (rms > 0 ? rms : 1);
  result->noise.rms = std::max(result->noise.rms, own);
  result->noise.max = std::max(result->noise.max, own);
  const bool nudged = input.high != nullptr && input.nudged != nullptr;
  if (nudged) {
    const double scale = input.noise.Nudge() * (rms > 0 ? rms : 1);
    result->noise.condition = std::max(1.0, std::sqrt(response.squares / finite) / scale);
    result->noise.condition_max = std::max(1.0, response.max / scale);
    result->noise.unstable = std::max(static_cast<double>(response.jumps) / finite, input.jumps);
  }
  if (own_jumps) {
    // Made by all of its roundings, not by one.
    const double roundings = std::max(WorkError(input.type, input.reduction, rule) / input.noise.Nudge(), 1.0);
    result->noise.unstable =
        std::max(result->noise.unstable, static_cast<double>(response.own_jumps) / finite / roundings);
  }
  const double few = FewElements(finite);
  const double uncertain = nudged && response.squares > 0 ? static_cast<double>(response.uncertain) / finite : 1;
  ScaledThresholds limits = ThresholdsFor(input.type, rms, input.reduction, few, uncertain, result->noise, rule);
  if (rule.one_term && rule.reduced == 0 && input.high != nullptr && input.own_rounding >= 0) {
    const double noise = (own_jumps ? response.noise_squares : magnitude.noise_squares) / finite;
    limits.rms = std::min(limits.rms, OneTermError(input, rms, noise, result->noise.condition));
  }
  Rule same = rule;
  same.reduced = 0;
  same.unit = rms > 0 ? rule.unit / rms : 0;
  result->scaled_same = ThresholdsFor(input.type, 1, input.reduction, few, 1, result->noise, same).rms;
  // The same where the rounding of each operation is known to be more than the inputs' is.
  if (own > 0 && limits.block > 0 && rms > 0) limits.block = std::max(limits.block, kNoiseFactor * limits.rms / rms);
  // (Of exp(x) near the largest number one element is the whole rms, and its response to a nudge larger than that.)
  if (nudged) limits.jump = JumpSize(magnitude);
  // Without a response there is no float input to nudge, and what cancels is not known.
  if (!nudged || response.squares == 0) limits.block = 0;
  result->undecided = rule.mode == RuleMode::kScaled && limits.jumps > kMostJumps;
  const double shown = static_cast<double>(response.jumps) / finite;
  if (result->undecided && finite >= kTelling &&
      JumpsAllowed(input.type, input.reduction, shown, input.noise, rule) > kMostJumps) {
    // Not of what the nudge itself does not show, as where few elements jump seldom.
    const double work = WorkError(WorkType(input.type, result->noise), input.reduction, rule);
    const double moved = std::sqrt((response.squares + response.jump_squares) / finite);
    limits.undecided = kNoiseFactor * std::max(std::max(work / input.noise.Nudge(), 1.0) * moved,
                                               std::sqrt(magnitude.noise_squares / finite));
  }
  result->jumps_expected = limits.jumps * finite;
  limits.jumps = JumpCount(limits.jumps, finite);
  if (input.high == nullptr && result->noise.known) {
    // Measured against the reference as written, whose own error adds.
    limits.rms += result->noise.rms * rms;
    limits.element += result->noise.max * rms;
  }
  for (double* limit : {&limits.rms, &limits.element, &limits.slack, &limits.block, &limits.block_floor,
                        &limits.roundings, &limits.undecided}) {
    *limit *= rule.times;
  }
  return limits;
}

void Decide(const ComparisonInput& input, const Rule& rule, const MagnitudeTally& magnitude,
            const ScaledThresholds& limits, const ErrorTally& errors, Comparison* result) {
  const double finite = static_cast<double>(std::max<std::int64_t>(magnitude.finite, 1));
  // Jumps that the reference's own nudge shows: so many elements may be off by any amount.
  const bool jumped = errors.beyond > 0 && static_cast<double>(errors.beyond) <= limits.jumps;
  const double squares = std::max(errors.squares - errors.steep_squares - (jumped ? errors.beyond_squares : 0), 0.0);
  const double rms = std::sqrt(magnitude.squares / finite), rms_error = std::sqrt(squares / finite);
  const double outlier_share = static_cast<double>(errors.outliers) / finite;
  const bool rms_ok = rms_error <= limits.rms, outliers_ok = outlier_share <= limits.outliers;
  const std::int64_t beyond = (jumped ? 0 : errors.beyond) + errors.special;
  result->scaled_error = rms > 0 ? rms_error / rms : rms_error;
  result->scaled_allowed = rms > 0 ? limits.rms / rms : limits.rms;
  result->passes_scaled = beyond == 0 && rms_ok && outliers_ok && errors.blocks == 0;
  result->passes_1e4 = errors.beyond_1e4 + errors.special == 0;
  result->passes_1e2 = errors.beyond_1e2 + errors.special == 0;
  result->max_abs_error = errors.max_abs;
  result->max_rel_error = errors.max_rel;
  const std::int64_t parts = input.type.kind == wire::DTypeKind::kComplex ? 2 : 1;
  result->worst = errors.worst < 0 ? -1 : errors.worst / parts;
  result->expected = errors.expected;
  result->got = errors.got;
  result->error = errors.error;
  result->allowed = errors.allowed;
  char text[320];
  if (rule.mode == RuleMode::kAbsoluteRelative) {
    result->mismatched = errors.beyond_given + errors.special;
    result->ok = result->mismatched == 0;
    if (!result->ok) result->why = "elements differ by more than atol + rtol * |expected|";
  } else {
    result->ok = result->passes_scaled;
    result->mismatched = beyond;
    if (errors.special > 0) {
      result->why = "NaN or infinity where the reference has a number, or the reverse";
    } else if (beyond > 0) {
      result->why = "elements differ by more than rounding explains";
      // A defect stands out of the other errors; a coarser type makes all of them alike.
      constexpr double kAlike = 12, kCoarse = 1e-2;
      if (!rms_ok && rms_error <= kCoarse * rms && errors.max_abs <= kAlike * rms_error) {
        result->why +=
            ", all of them about alike, as by work in a lower precision or by a constant that is slightly off";
      }
    } else if (!rms_ok) {
      std::snprintf(
          text, sizeof text,
          "the rms error is %.3g of the output's rms, and %.3g is allowed: every element is close, but all of "
          "them together are off as by work in a lower precision or by a constant that is slightly off",
          result->scaled_error, result->scaled_allowed);
      result->why = text;
      result->mismatched = errors.outliers;
    } else if (!outliers_ok) {
      std::snprintf(
          text, sizeof text,
          "%.3g %% of the elements are off by more than 2^-10 of themselves, and %.3g %% may be: small elements "
          "are not computed",
          100 * outlier_share, 100 * limits.outliers);
      result->why = text;
      result->mismatched = errors.outliers;
    } else if (errors.blocks > 0) {
      std::snprintf(text, sizeof text,
                    "%lld blocks of %lld neighbours are off by more than rounding explains, though they are small "
                    "beside the rest of the output",
                    static_cast<long long>(errors.blocks), static_cast<long long>(kNeighbours));
      result->why = text;
      result->mismatched = errors.blocks * kNeighbours;
      result->only_blocks = true;
    }
  }
  if (!result->ok && std::sqrt(errors.squares / finite) > limits.undecided) result->undecided = false;
  // Where the reference's own error is as large as its result, the limits let anything pass: what differs from both is
  // as little decided as what jumps.
  if (result->undecided && result->ok && rms_error > kJump * rms && errors.max_abs > kJump * rms) {
    result->mismatched = std::max<std::int64_t>(errors.outliers, 1);
  }
  result->excused = result->ok && jumped && rule.mode == RuleMode::kScaled;
  if (result->excused) result->jumps = errors.beyond;
  result->mismatched = std::min(result->mismatched, result->elements);
}

Comparison Compare(const ComparisonInput& input, const Rule& rule) {
  switch (input.type.kind) {
    case wire::DTypeKind::kBool:
      return CompareExact<std::uint8_t>(input, rule);
    case wire::DTypeKind::kUint:
      return CompareExact<std::uint8_t>(input, rule);
    case wire::DTypeKind::kInt:
      switch (input.type.bits) {
        case 8:
          return CompareExact<std::int8_t>(input, rule);
        case 16:
          return CompareExact<std::int16_t>(input, rule);
        case 32:
          return CompareExact<std::int32_t>(input, rule);
        default:
          return CompareExact<std::int64_t>(input, rule);
      }
    case wire::DTypeKind::kBfloat:
      return CompareReal<16, true>(input, rule);
    case wire::DTypeKind::kFloat:
      if (input.type.bits == 16) return CompareReal<16, false>(input, rule);
      if (input.type.bits == 32) return CompareReal<32, false>(input, rule);
      return CompareReal<64, false>(input, rule);
    case wire::DTypeKind::kComplex:
      if (input.type.bits == 64) return CompareReal<32, false>(input, rule);
      return CompareReal<64, false>(input, rule);
  }
  return {};
}

namespace {

// Never what arithmetic makes of itself: a NaN without a payload, or with all of it (CUDA's).
std::uint32_t Payload(std::uint32_t salt, std::uint32_t mask) {
  const std::uint32_t bits = salt & mask;
  return bits == 0 || bits == mask ? mask >> 1 : bits;
}

}  // namespace

std::vector<unsigned char> PoisonElement(const wire::DType& type, std::uint32_t salt) {
  std::vector<unsigned char> bytes(type.bytes());
  auto put = [&bytes](std::size_t at, auto value) { std::memcpy(bytes.data() + at, &value, sizeof value); };
  switch (type.kind) {
    case wire::DTypeKind::kBool:
      bytes[0] = 0xA5;  // neither false nor true
      break;
    case wire::DTypeKind::kBfloat:
      put(0, static_cast<std::uint16_t>(0x7fc0 | Payload(salt, 0x3f)));
      break;
    case wire::DTypeKind::kFloat:
    case wire::DTypeKind::kComplex: {
      const std::size_t part = type.kind == wire::DTypeKind::kComplex ? bytes.size() / 2 : bytes.size();
      for (std::size_t at = 0; at < bytes.size(); at += part) {
        if (part == 8) {
          put(at, std::uint64_t{0x7ff8000000000000} | Payload(salt, 0xffffffff));
        } else if (part == 4) {
          put(at, std::uint32_t{0x7fc00000} | Payload(salt, 0x3fffff));
        } else {
          put(at, static_cast<std::uint16_t>(0x7e00 | Payload(salt, 0x1ff)));
        }
      }
      break;
    }
    default:
      for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<unsigned char>(0x9d ^ (salt >> (8 * (i % 4))));
  }
  return bytes;
}

std::vector<std::int64_t> Unravel(std::int64_t flat, const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> index(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    index[i] = flat % std::max<std::int64_t>(shape[i], 1);
    flat /= std::max<std::int64_t>(shape[i], 1);
  }
  return index;
}

float HalfToFloat(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1f, fraction = bits & 0x3ff;
  if (exponent == 0)
    return std::bit_cast<float>(sign) + (sign != 0 ? -1.0f : 1.0f) * std::ldexp(static_cast<float>(fraction), -24);
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000 | (fraction << 13));
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
}

float BfloatToFloat(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

}  // namespace grove::judge
