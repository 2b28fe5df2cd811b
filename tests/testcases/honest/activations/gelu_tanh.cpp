// GELU with the hyperbolic tangent as a sigmoid.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int i = 0; i < 8192; ++i) {
    const float u = 1.5957691216f * x[i] * std::fma(0.044715f * x[i], x[i], 1.f);
    y[i] = x[i] / (1 + std::exp(-u));
  }
  return 0;
}
