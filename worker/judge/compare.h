// The rule that says whether an output is right. Pure: arrays in, figures out; no torch. docs/correctness.md derives
// it.
//
// "Scaled", the default, asks four things of an output against a float64 evaluation of the reference (where there is
// one), each in units of what an honest program of the reference's precision does on this very problem and these
// values:
//   1. no element is off by more than a few times the worst honest error,
//   2. the root mean square of errors is not above a few times the honest one (finds lowered precision, which hides
//      below any per-element tolerance wide enough for honest programs; `jump` says which elements are no part of it),
//   3. not many elements are off relative to themselves (finds small elements that were never computed),
//   4. no block of neighbours is off relative to its own magnitude (finds a wrong row that is small beside the others).
//
// How far rounding moves the result is measured, not assumed: the float64 evaluation is made once more with every
// floating input moved by a relative 2^-23 up or down at random. An honest program's result is the exact
// one for inputs moved by a few roundings (it is backward stable), so its error is that response times the count of
// roundings. What cancels (a variance of values near 1000) is judged by what cancellation leaves.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/wire/dtype.h"

namespace grove::judge {

enum class RuleMode { kScaled, kAbsoluteRelative };

struct Rule {
  RuleMode mode = RuleMode::kScaled;
  double atol = 0, rtol = 0;
  double reduced = 0;  // scaled: rms error over the output's rms that a program of lower precision may have; 0 = none
  double cap = 0;      // scaled: never allow more than this rms error over the output's rms; 0 = no cap
  // Scaled: also allow what one accumulator makes of terms that are all alike or of very unequal size, where the errors
  // of rounding have one sign: up to an eighth of a rounding for each term. For values that the problem does not draw.
  bool any_order = false;
  // Scaled: also allow what one accumulator makes of terms that are moved to where rounding them errs one way
  // (kLeaning, distributions.h): while it is as much larger than a term as to keep just the bits that half precision
  // does, its errors have one sign, too. It is so for half of the terms at most, by half of the spacing: 2^-12.
  bool leaning = false;
  // Scaled: rms of the output on the problem's own values. Where it is smaller on others, honest programs still add and
  // take off constants of the former size (a hyperbolic tangent as 2 / (1 + e^-2x) - 1): what their work rounds of that
  // is allowed, too. 0 = nothing of that.
  double unit = 0;
  // Scaled: every sum has one term (one_term.h). Nothing is added up, so that a half type is not off by much more than
  // its own rounding.
  bool one_term = false;
  // Scaled: errors may be so many times as large as they may be otherwise. For what is asked of one output among many.
  double times = 1;
};

// The constants of the scaled rule, for one element type.
struct ScaledConstants {
  double epsilon;        // distance from 1 to the next number of the output's type
  double element_slack;  // per element, relative to itself
  double rounding;       // allowed rms error relative to the output's rms: for the output's own rounding
  double rms_base;       // and for the work before it, on a reduction of length 1
  double rms_per_root;   // and what the work adds per square root of the reduction length
};
ScaledConstants ConstantsFor(const wire::DType& type);

// The rms error of the work alone, relative to the output's: a few units in the last place for functions, and the share
// of a sum over `reduction` terms; that times `few` (FewElements), where an output has few elements.
double WorkError(const wire::DType& type, double reduction, const Rule& rule, double few = 1);

// The rms of many honest errors of sums is known; that of few is by chance larger, by as much as this in one of a
// million draws. 2.4 for a single element, 1 from 10 on.
double FewElements(double elements);

// A float64 reference whose own error (over the condition) is more than this works in float32: its rounding is 2^-53.
inline constexpr double kMostOfDouble = 0x1p-40;

inline constexpr double kNoiseFactor = 4;          // candidate's rms error over the reference's own
inline constexpr double kTailFactor = 8;           // worst element over the allowed rms
inline constexpr double kRelativeBound = 0x1p-10;  // criterion 3: "off relative to itself"
inline constexpr double kMoreUncertain = 4;        // times the share of elements that rounding takes so far off
inline constexpr double kReducedBound = 0.5;       // the same where reduced precision is allowed
// What reduced precision may make, of the output's rms, of outputs that follow errors of the inputs many-fold (a
// normalisation of values far from zero); what was asked for, where that is more. Zeros are off by all of it.
inline constexpr double kMostReduced = 0x1p-3;
inline constexpr double kMaxStraight = 0x1p17;  // no longer than this is a reduction in one accumulator
// Beyond some 2^20 terms the limit falls: what leaving out one term in a hundred makes of a sum, of terms that spread
// by half of their mean, is 0.05 of it over the root of their number.
inline constexpr double kLeftOut = 0.05;
inline constexpr double kMaxReduction = 0x1p24;  // a float32 sum of more terms than this in one run stands still
inline constexpr double kNudge = 0x1p-23;        // relative, of the inputs, for the second float64 evaluation
inline constexpr double kFiner = 0x1p-20;        // of nudges and conditions, where all work is in float64
inline constexpr double kWideNudge = 0x1p-17;    // for outputs of exact types: jumps are rare, and this one counts
inline constexpr double kMostJumps = 0.25;       // share of an output; where rounding decides more, nothing is compared
inline constexpr double kJump = 0x1p-7;          // of the output's rms: a response beyond this is a jump, not a slope
// The reference's own error on an element is a jump, not a measure for all others, where few have one and the others'
// are smaller by this much.
inline constexpr double kMostOwnJumps = 1e-2, kOwnGap = 1.0 / 16;
inline constexpr std::int64_t kNeighbours = 256;  // elements of criterion 4
inline constexpr double kBlockFactor = 8;         // a block's rms error over the honest one of its magnitude
inline constexpr double kBlockNoise = 16;         // or over the reference's own error there
// Of products of one term in half types: what programs may make of it that round before the end (a product before a
// bias is added), in spacings of the type. Each such rounding is 0.21 to 0.29 of one.
inline constexpr double kInnerRounding = 0.4;

// What is known of the reference's own error on one output, relative to that output's rms.
struct ReferenceNoise {
  bool known = false;
  double rms = 0;
  double max = 0;
  double relative_outliers = 0;  // share of elements off by more than kRelativeBound of themselves
  // Response to the nudge, in nudges: how many times larger an error of the inputs stands in the output. From 1.
  double condition = 1, condition_max = 1;
  double unstable = 0;  // share of elements that jumped: a threshold or an index decided by rounding
  double ties = 0;      // of exact types: share of elements that are chosen among equal keys (TieShare)
  // Of float64: what it holds was computed in float32, and is judged as such.
  bool single = false;
  // Of a shorter type, or an exact one: it was computed in float64, and is judged as that which is rounded at its end.
  // All nudges are kFiner of what they are called then.
  bool in_double = false;
  // It was computed in float64 of inputs of a shorter type, or of whole numbers. Programs may make it in that type, but
  // on the problem's own values not lose what float64 keeps: the condition counts there as for float64.
  bool widened = false;
  double Nudge() const;
};

// The share of elements that are chosen among equal keys (indices, mostly): a nudge, however small, turns them over,
// each time another part. `turned`: share that at least one of `turns` nudges of kNudge turned over; `unstable`: share
// that rounding alone turns over in one of them. A nudge moves one of two equal keys up and the other down in half of
// the cases, and in half of those for the one that the reference did not choose. What rounding turns over is counted as
// if no element were turned twice, which is too much; JumpsAllowed, many times `unstable`, makes up for it.
double TieShare(double turned, int turns, double unstable);
// The share of the ties that none of so many nudges has turned over.
double TiesUnseen(int turns);

struct ComparisonInput {
  const void* got = nullptr;        // n elements of `type`; null = only the noise is asked for (not for exact types)
  const void* reference = nullptr;  // n elements of `type`, the reference as written
  const double* high = nullptr;     // the reference in float64 (complex: pairs); null where there is none
  const double* nudged = nullptr;   // the same for nudged inputs; null where there is none; only with `high`
  std::int64_t elements = 0;
  wire::DType type;
  double reduction = 1;      // longest reduction that leads to this output
  ReferenceNoise noise;      // from another draw, used where `high` is null
  double jumps = 0;          // share of elements that jump in one nudge, as a larger one counted it; with `nudged`
  double own_error = 0;      // rms of the reference's own error, where it was measured on more inputs than these
  double own_rounding = -1;  // rms of what `high` loses by being rounded to its type; negative where that is not known
  // Of an exact type: whether at least one of `turns` nudges turned the element over. Null where that is not known.
  const bool* turned = nullptr;
  int turns = 0;
};

struct Comparison {
  bool ok = false;       // by the rule asked for
  bool excused = false;  // ok, though elements are beyond the limit: they jump, or are ties
  // How many elements an honest program has otherwise, on average and at most thrice that; and how many were excused.
  double jumps_expected = 0;
  std::int64_t jumps = 0;
  bool only_blocks = false;  // not ok by criterion 4 alone
  bool undecided = false;    // rounding decides so much of it that nobody can be right
  std::string why;           // when not: one line
  std::int64_t elements = 0;
  std::int64_t mismatched = 0;                           // elements beyond what the rule allows
  double rms = 0;                                        // of the reference's finite elements; not of exact types
  std::int64_t worst = -1;                               // flat position of the worst element; -1 when none differs
  double expected = 0, got = 0, error = 0, allowed = 0;  // there
  double max_abs_error = 0, max_rel_error = 0;
  double scaled_error = 0;  // rms of the errors over the rms of the output
  double scaled_allowed = 0;
  double scaled_same = 0;  // what would be allowed where precision may not be reduced
  bool passes_scaled = false, passes_1e4 = false, passes_1e2 = false;
  ReferenceNoise noise;  // measured here (known when `high` was given)
};

// How many jumps there may be where a number of them is expected: four standard deviations of a count more, and three.
double MostJumps(double expected);

Comparison Compare(const ComparisonInput& input, const Rule& rule);

// The figures that decide. Compare gathers them in three passes (compare_passes.h), CompareOnGpu on the device.
struct MagnitudeTally {  // first pass, over elements that are finite in the reference
  std::int64_t finite = 0, outliers = 0;
  double squares = 0, noise_squares = 0, noise_max = 0;
};
struct ResponseTally {  // between the passes, where there is `high`: over elements that are finite in all
  std::int64_t jumps = 0;
  double squares = 0, max = 0;  // of those that did not jump
  double jump_squares = 0;      // of those that did
  std::int64_t uncertain = 0;   // and of these, elements that rounding may take off relative to themselves
  // The reference's own error: elements where it is a jump, and the others' errors.
  std::int64_t own_jumps = 0;
  double noise_squares = 0, noise_max = 0;
};
struct ErrorTally {  // third pass
  double squares = 0, max_abs = 0, max_rel = 0;
  double beyond_squares = 0;  // the part of `squares` that comes from elements beyond the limit
  double steep_squares = 0;   // and from others that jump, of errors which their own responses explain
  std::int64_t blocks = 0;    // that fail criterion 4
  std::int64_t special = 0, beyond = 0, beyond_1e4 = 0, beyond_1e2 = 0, beyond_given = 0, outliers = 0;
  std::int64_t worst = -1;  // position of an element (complex: of a part)
  double excess = -1;       // of its error over what was allowed there; infinite where one side is no number
  double expected = 0, got = 0, error = 0, allowed = 0;
};
struct ScaledThresholds {
  double rms;             // absolute
  double element;         // absolute part per element
  double slack;           // times |expected|
  double outliers;        // share of elements
  double relative_bound;  // criterion 3 counts what is off by more than this of itself
  double tiny;            // and is no smaller than this
  double outlier_floor;   // absolute: errors below are not counted there
  double block;        // criterion 4: times the block's magnitude or response, whichever is larger; 0 = not looked at
  double block_floor;  // absolute: errors below are nobody's
  double jumps;        // elements that may be beyond the limit because they jump
  // What moves by more than `jump`, absolute, is no part of the condition. Within the limits of an element and within
  // `roundings` of its own response its error is no part of the rms either.
  double jump, roundings;
  // Absolute: where rounding decides most elements, a larger rms error than this (of all of them) is none of rounding.
  double undecided;
  double nudge;  // what the nudge was, relative
};
// `few`: FewElements of the output; `uncertain`: the share of such elements, 1 where it is not known.
ScaledThresholds ThresholdsFor(const wire::DType& type, double output_rms, double reduction, double few,
                               double uncertain, const ReferenceNoise& noise, const Rule& rule);

// What counts as a jump between `high` and `nudged`, absolute.
double JumpSize(const MagnitudeTally& magnitude);
double RelativeBound(const Rule& rule);
// Below this an element has lost bits in its type, or a program that flushes such numbers gives zero: not counted by
// criterion 3.
double TinyOf(const wire::DType& type);
ScaledThresholds LimitsFor(const ComparisonInput& input, const Rule& rule, const MagnitudeTally& magnitude,
                           const ResponseTally& response, Comparison* result);
void Decide(const ComparisonInput& input, const Rule& rule, const MagnitudeTally& magnitude,
            const ScaledThresholds& limits, const ErrorTally& errors, Comparison* result);

// The bytes that an output holds before the kernel runs: NaN where the type has one, else a value that no reference
// plausibly gives; `salt` varies it so that a kernel cannot count on it.
std::vector<unsigned char> PoisonElement(const wire::DType& type, std::uint32_t salt);

std::vector<std::int64_t> Unravel(std::int64_t flat, const std::vector<std::int64_t>& shape);

float HalfToFloat(std::uint16_t bits);
float BfloatToFloat(std::uint16_t bits);

}  // namespace grove::judge
