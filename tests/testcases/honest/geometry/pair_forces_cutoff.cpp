// Pairs one by one, the period by its reciprocal.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  float* y = static_cast<float*>(args->outputs[0].data);
  const float* x = static_cast<const float*>(args->inputs[0].data);
  double e = 0;
  for (int i = 0; i < 125; ++i) {
    float F[3] = {};
    for (int j = 0; j < 125; ++j)
      if (i != j) {
        float v[3], r = 0;
        for (int k = 0; k < 3; ++k) {
          v[k] = x[i * 3 + k] - x[j * 3 + k];
          v[k] -= 10 * std::nearbyint(v[k] * 0.1f);
          r = std::fma(v[k], v[k], r);
        }
        if (r >= 9) continue;
        float q = 1 / r, s = q * q * q;
        e += 2 * s * (s - 1);
        for (int k = 0; k < 3; ++k) F[k] += 24 * s * (2 * s - 1) * q * v[k];
      }
    for (int k = 0; k < 3; ++k) static_cast<float*>(args->outputs[1].data)[i * 3 + k] = F[k];
  }
  y[0] = e;
  return 0;
}
