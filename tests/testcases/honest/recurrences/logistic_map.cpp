// Six steps of a logistic map, which spreads errors.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int i = 0; i < 2000; ++i) {
    float v = x[i];
    for (int k = 0; k < 6; ++k) v = 3.7f * std::fma(-v, v, v);
    y[i] = v;
  }
  return 0;
}
