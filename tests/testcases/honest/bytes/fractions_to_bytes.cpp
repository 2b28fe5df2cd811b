// Rounded in floating point: there are no bytes.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  float* y = static_cast<float*>(args->outputs[0].data);
  const float* x = static_cast<const float*>(args->inputs[0].data);
  for (int i = 0; i < 4800; ++i) y[i] = std::floor(x[i] * 255) * (1 / 255.f);
  return 0;
}
