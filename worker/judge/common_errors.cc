#include "worker/judge/common_errors.h"

#include <algorithm>
#include <cmath>

namespace grove::judge {
namespace {

// By fewer lines, or shorter ones, nothing is said.
constexpr std::size_t kFewestLines = 8;
constexpr std::int64_t kShortest = 8;
// Of a chi-square distribution with 8 degrees of freedom and more, which the sum of so many ratios has: 3 in 10^6 at
// most.
constexpr double kSigmas = 8;
constexpr double kOwnSigmas = 4;  // that the reference's own errors may have
// What is rounded to b bits of a fraction is off by 2^-b times this, rms and relative to its rms: 1 / sqrt(12) of a
// spacing, which is 2^-b of a number from 1 to 2 (0.19 of uniform values, 0.21 where all sizes are as frequent).
constexpr double kPerSpacing = 0.2;
constexpr double kFinest = 0x1p-14;  // of factors, rms and relative: rounding to 12 bits is off by 2^-14.3

double Squares(const std::vector<double>& values) {
  double squares = 0;
  for (double value : values) squares += value * value;
  return squares;
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// What accumulators that cut give all elements; of errors that a few lines have nearly all of, nothing of theirs.
double Middle(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void Without(double constant, std::vector<double>* values) {
  for (double& value : *values) value -= constant;
}

// How large, relative to themselves, the errors of factors are. A sum of K positive terms grows with K, and what errors
// of its factors make of it with the root of K.
double OfFactors(const CommonErrors& common, double reduction) { return common.size * std::sqrt(reduction); }

}  // namespace

std::vector<CommonErrors> ErrorsInCommon(std::vector<double> errors, const std::vector<double>& result,
                                         const std::vector<std::int64_t>& shape) {
  std::vector<CommonErrors> found;
  const std::size_t n = errors.size();
  if (n == 0 || result.size() != n || !std::isfinite(Squares(errors))) return found;
  const double magnitude = std::sqrt(Squares(result) / static_cast<double>(n));
  std::vector<double> direction = result;
  Without(Mean(result), &direction);
  Without(Mean(errors), &errors);
  const double length = Squares(direction);
  if (length > 0) {
    double along = 0;
    for (std::size_t i = 0; i < n; ++i) along += errors[i] * direction[i];
    for (std::size_t i = 0; i < n; ++i) errors[i] -= along / length * direction[i];
  }
  Without(Middle(errors), &errors);
  const double all = Squares(errors);
  if (!(all > 0) || !(magnitude > 0)) return found;
  std::size_t stride = n;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    const auto size = static_cast<std::size_t>(shape[axis]);
    if (size == 0 || stride % size != 0) return {};  // not the shape of these elements
    stride /= size;
    if (shape[axis] < kShortest) continue;
    // Each line says it for itself, however large its errors are: of independent ones the square of the sum is the sum
    // of the squares, on average, give or take 1.4 times that.
    double sums = 0, ratios = 0;
    std::size_t lines = 0;
    for (std::size_t outer = 0; outer < n; outer += stride * size) {
      for (std::size_t line = outer; line < outer + stride; ++line) {
        double sum = 0, squares = 0;
        for (std::size_t i = line; i < line + stride * size; i += stride) {
          sum += errors[i];
          squares += errors[i] * errors[i];
        }
        if (squares == 0) continue;
        sums += sum * sum;
        ratios += sum * sum / squares;
        ++lines;
      }
    }
    if (lines < kFewestLines) continue;
    CommonErrors common;
    common.axis = axis;
    common.times = ratios / static_cast<double>(lines);
    common.sigmas = (common.times - 1) / std::sqrt(2 / static_cast<double>(lines));
    const double share = (sums / all - 1) / static_cast<double>(size - 1);
    common.size = std::sqrt(std::clamp(share, 0.0, 1.0) * all / static_cast<double>(n)) / magnitude;
    found.push_back(common);
  }
  return found;
}

std::optional<CommonErrors> LoweredFactors(const std::vector<CommonErrors>& found, const std::vector<CommonErrors>& own,
                                           double reduction) {
  std::optional<CommonErrors> lowered;
  for (const CommonErrors& one : found) {
    const auto same =
        std::find_if(own.begin(), own.end(), [&one](const CommonErrors& its) { return its.axis == one.axis; });
    // Where nothing is known of the reference's own (it is exact but in a few lines), nothing is said.
    if (same == own.end() || same->sigmas > kOwnSigmas) continue;
    if (one.sigmas < kSigmas || OfFactors(one, reduction) < kFinest) continue;
    if (!lowered || one.size > lowered->size) lowered = one;
  }
  return lowered;
}

double BitsOfFactors(const CommonErrors& common, double reduction) {
  return std::log2(kPerSpacing / OfFactors(common, reduction));
}

}  // namespace grove::judge
