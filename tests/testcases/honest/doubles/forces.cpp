// Four accumulators, and a reciprocal root instead of a quotient.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const auto* p = static_cast<const double*>(args->inputs[0].data);
  auto* force = static_cast<float*>(args->outputs[0].data);
  const int64_t n = args->inputs[0].shape[0];
  for (int64_t i = 0; i < n; ++i) {
    float sums[4][3] = {};
    for (int64_t j = 0; j < n; ++j) {
      float d[3], r2 = 1;
      for (int k = 0; k < 3; ++k) {
        d[k] = static_cast<float>(p[3 * i + k] - p[3 * j + k]);
        r2 = std::fma(d[k], d[k], r2);
      }
      const float r = 1 / std::sqrt(r2), r3 = r * r * r;
      for (int k = 0; k < 3; ++k) sums[j % 4][k] = std::fma(d[k], r3, sums[j % 4][k]);
    }
    for (int k = 0; k < 3; ++k) force[3 * i + k] = (sums[0][k] + sums[1][k]) + (sums[2][k] + sums[3][k]);
  }
  return 0;
}
