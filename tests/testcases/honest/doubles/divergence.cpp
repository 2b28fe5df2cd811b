// In float32, which is enough where nothing cancels.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>

namespace {

float LogSum(const float* row, int64_t n) {
  const float most = *std::max_element(row, row + n);
  float sums[4] = {};
  for (int64_t i = 0; i < n; ++i) sums[i % 4] += std::exp(row[i] - most);
  return most + std::log((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

}  // namespace

GROVE_KERNEL(args) {
  const auto* p = static_cast<const float*>(args->inputs[0].data);
  const auto* q = static_cast<const float*>(args->inputs[1].data);
  auto* y = static_cast<float*>(args->outputs[0].data);
  const int64_t rows = args->inputs[0].shape[0], n = args->inputs[0].shape[1];
  for (int64_t r = 0; r < rows; ++r) {
    const float *a = p + r * n, *b = q + r * n, of_a = LogSum(a, n), of_b = LogSum(b, n);
    float sums[4] = {};
    for (int64_t i = 0; i < n; ++i) sums[i % 4] += std::exp(a[i] - of_a) * ((a[i] - of_a) - (b[i] - of_b));
    y[r] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
  return 0;
}
