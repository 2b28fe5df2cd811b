// A running product in double.
#include <grove/kernel.h>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int r = 0; r < 64; ++r) {
    double p = 1;
    for (int c = 0; c < 100; ++c) y[r * 100 + c] = static_cast<float>(p *= 1 + 0.1 * x[r * 100 + c]);
  }
  return 0;
}
