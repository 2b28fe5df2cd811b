// Rounding of whole numbers over four, to even, by adding and taking off 1.5 times 2 to the 23rd.
#include <grove/kernel.h>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int i = 0; i < 2500; ++i) {
    volatile float t = x[i] * 0.25f + 12582912.f;
    y[i] = t - 12582912.f;
  }
  return 0;
}
