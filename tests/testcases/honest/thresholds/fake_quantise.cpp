// Fake quantisation: a value brought to its grid and back, in one product with the reciprocal.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int i = 0; i < 64 * 200; ++i) {
    const float v = std::nearbyint(x[i] * 20.f);
    y[i] = (v < -128 ? -128 : v > 127 ? 127 : v) * 0.05f;
  }
  return 0;
}
