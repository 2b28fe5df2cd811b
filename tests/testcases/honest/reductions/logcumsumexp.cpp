// Each prefix from the one before, by log1p.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  float* y = static_cast<float*>(args->outputs[0].data);
  const float* x = static_cast<const float*>(args->inputs[0].data);
  for (int r = 0; r < 40; ++r) {
    float s = x[r * 500];
    y[r * 500] = s;
    for (int i = 1; i < 500; ++i) {
      float v = x[r * 500 + i];
      float M = std::fmax(s, v), m = std::fmin(s, v);
      s = M + std::log1p(std::exp(m - M));
      y[r * 500 + i] = s;
    }
  }
  return 0;
}
