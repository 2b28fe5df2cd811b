// SwiGLU with a reciprocal.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int r = 0; r < 40; ++r)
    for (int c = 0; c < 128; ++c) {
      const float a = x[r * 256 + c], s = 1 / (1 + std::exp(-a));
      y[r * 128 + c] = a * s * x[r * 256 + 128 + c];
    }
  return 0;
}
