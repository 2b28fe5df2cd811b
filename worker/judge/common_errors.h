// Errors that a whole row or column has in common. Rounding in a sum of its own gives each element an error of its own;
// a factor that was rounded before it was multiplied is off by the same in every element that it is a factor of. Over
// long sums of positive terms most of what such a factor makes is common to them, whatever grid it was rounded on.
// Pure. docs/correctness-distributions.md ("Errors in common") derives the constants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace grove::judge {

struct CommonErrors {
  std::size_t axis = 0;  // of the output, along which errors have something in common
  double times = 0;      // squares of sums along it, over what independent errors give, on average: 1 = nothing
  double sigmas = 0;     // by how many standard deviations of independent errors that is more than 1
  double size = 0;       // rms of what is common over the rms of the result
};

// Along each axis of `shape` on which there is enough to say so. `errors`: got less exact, elements in row-major order;
// `result`: the exact elements. What errors have of the result itself, as by a constant that is slightly off, is left
// out.
std::vector<CommonErrors> ErrorsInCommon(std::vector<double> errors, const std::vector<double>& result,
                                         const std::vector<std::int64_t>& shape);

// Of a candidate's errors those that tell of factors with fewer bits than float32 has, in sums of `reduction` terms.
// `own`: the reference's own errors, on the same elements. Nothing where these have as much in common: elements that
// repeat err alike in any program.
std::optional<CommonErrors> LoweredFactors(const std::vector<CommonErrors>& found, const std::vector<CommonErrors>& own,
                                           double reduction);

// The bits of a fraction to which factors were rounded, about, when that is what errors have in common.
double BitsOfFactors(const CommonErrors& common, double reduction);

}  // namespace grove::judge
