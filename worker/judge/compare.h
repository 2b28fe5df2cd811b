// The rule that says whether an output is right. Pure: arrays in, figures out; no torch. docs/correctness.md derives
// it.
//
// "Scaled", the default, asks three things of an output against a float64 evaluation of the reference (where there is
// one), each in units of what an honest single-precision program does on this very problem:
//   1. no element is off by more than a few times the worst honest error,
//   2. the root mean square of all errors is not above a few times the honest one (finds lowered precision, which hides
//      below any per-element tolerance wide enough for honest programs),
//   3. not many elements are off relative to themselves (finds small elements that were never computed).
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
};

// The constants of the scaled rule, for one element type.
struct ScaledConstants {
  double epsilon;        // distance from 1 to the next number of the output's type
  double element_slack;  // per element, relative to itself
  double rms_base;       // allowed rms error relative to the output's rms, for a reduction of length 1
  double rms_per_root;   // and what is added per square root of the reduction length
};
ScaledConstants ConstantsFor(const wire::DType& type);

inline constexpr double kNoiseFactor = 4;          // candidate's rms error over the reference's own
inline constexpr double kTailFactor = 8;           // worst element over the allowed rms
inline constexpr double kRelativeBound = 0x1p-10;  // criterion 3: "off relative to itself"

// What is known of the reference's own error on one output, relative to that output's rms.
struct ReferenceNoise {
  bool known = false;
  double rms = 0;
  double max = 0;
  double relative_outliers = 0;  // share of elements off by more than kRelativeBound of themselves
};

struct ComparisonInput {
  const void* got = nullptr;        // n elements of `type`
  const void* reference = nullptr;  // n elements of `type`, the reference as written
  const double* high = nullptr;     // the reference in float64 (complex: pairs); null where there is none
  std::int64_t elements = 0;
  wire::DType type;
  double reduction = 1;  // longest reduction that leads to this output
  ReferenceNoise noise;  // from another draw, used where `high` is null
};

struct Comparison {
  bool ok = false;  // by the rule asked for
  std::string why;  // when not: one line
  std::int64_t elements = 0;
  std::int64_t mismatched = 0;                           // elements beyond what the rule allows
  std::int64_t worst = -1;                               // flat position of the worst element; -1 when none differs
  double expected = 0, got = 0, error = 0, allowed = 0;  // there
  double max_abs_error = 0, max_rel_error = 0;
  double scaled_error = 0;  // rms of the errors over the rms of the output
  double scaled_allowed = 0;
  bool passes_scaled = false, passes_1e4 = false, passes_1e2 = false;
  ReferenceNoise noise;  // measured here (known when `high` was given)
};

Comparison Compare(const ComparisonInput& input, const Rule& rule);

// The figures that decide. Compare gathers them in two passes; for large outputs on a GPU, torch does so on the device.
struct MagnitudeTally {  // first pass, over elements that are finite in the reference
  std::int64_t finite = 0, outliers = 0;
  double squares = 0, noise_squares = 0, noise_max = 0;
};
struct ErrorTally {  // second pass
  double squares = 0, max_abs = 0, max_rel = 0;
  std::int64_t special = 0, beyond = 0, beyond_1e4 = 0, beyond_1e2 = 0, beyond_given = 0, outliers = 0;
  std::int64_t worst = -1;  // position of an element (complex: of a part)
  double expected = 0, got = 0, error = 0, allowed = 0;
};
struct ScaledThresholds {
  double rms;       // absolute
  double element;   // absolute part per element
  double slack;     // times |expected|
  double outliers;  // share of elements
};
ScaledThresholds ThresholdsFor(const wire::DType& type, double output_rms, double reduction,
                               const ReferenceNoise& noise);

ScaledThresholds LimitsFor(const ComparisonInput& input, const MagnitudeTally& magnitude, Comparison* result);
void Decide(const ComparisonInput& input, const Rule& rule, const MagnitudeTally& magnitude,
            const ScaledThresholds& limits, const ErrorTally& errors, Comparison* result);

// The bytes that an output holds before the kernel runs: NaN where the type has one, else a value that no reference
// plausibly gives; `salt` varies it so that a kernel cannot count on it.
std::vector<unsigned char> PoisonElement(const wire::DType& type, std::uint32_t salt);

std::vector<std::int64_t> Unravel(std::int64_t flat, const std::vector<std::int64_t>& shape);

float HalfToFloat(std::uint16_t bits);
float BfloatToFloat(std::uint16_t bits);

}  // namespace grove::judge
