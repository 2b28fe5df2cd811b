// The comparisons of compare.h over arrays in a GPU's memory, in one kernel a pass. On the default stream, behind what
// is queued there; they wait. Errors are std::runtime_error.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/judge/compare.h"

namespace grove::judge {

// As Compare, of a floating-point or complex type; all pointers are the device's, aligned to their elements.
Comparison CompareOnGpu(const ComparisonInput& input, const Rule& rule);

// An output and what it should be, both on the device: `elements` of `type`.
struct ComparedRow {
  const void* got = nullptr;
  const void* expected = nullptr;
  std::int64_t elements = 0;
  wire::DType type;
};
// Over the rms of what is expected (over 1 where that is 0): the largest error and the rms error. NaN where only one
// side is a NaN. Of exact types: 1 where any element differs.
struct RowError {
  double largest = 0, rms = 0;
};
std::vector<RowError> RowErrorsOnGpu(const std::vector<ComparedRow>& rows);

}  // namespace grove::judge
