// GELU by the complementary error function.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int i = 0; i < 8192; ++i) y[i] = 0.5f * x[i] * std::erfc(-0.70710678f * x[i]);
  return 0;
}
