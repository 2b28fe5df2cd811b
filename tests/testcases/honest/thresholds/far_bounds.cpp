// Bounds that no value drawn comes near, taken one by one.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  float* z = static_cast<float*>(args->outputs[1].data);
  float* e = static_cast<float*>(args->outputs[2].data);
  for (int i = 0; i < 70 * 90; ++i) {
    const float v = x[i];
    y[i] = (v > 2e4f ? 2e4f : v < -3e4f ? -3e4f : v) / 2;
    z[i] = v > 1e3f ? std::sqrt(v) : v;
    e[i] = static_cast<float>(std::exp(double{v > 10 ? 10 : v < -10 ? -10 : v}));
  }
  return 0;
}
