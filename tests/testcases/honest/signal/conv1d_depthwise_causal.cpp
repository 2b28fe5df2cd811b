// A causal depthwise convolution with a sliding window, then SiLU.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* w = static_cast<const float*>(args->inputs[1].data);
  const float* b = static_cast<const float*>(args->inputs[2].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int r = 0; r < 36; ++r) {
    float q[3] = {};
    const float* g = w + r % 12 * 4;
    for (int t = 0; t < 60; ++t) {
      const float v = x[r * 60 + t];
      const float s = b[r % 12] + g[3] * v + g[2] * q[0] + g[1] * q[1] + g[0] * q[2];
      q[2] = q[1];
      q[1] = q[0];
      q[0] = v;
      y[r * 60 + t] = s / (1 + std::exp(-s));
    }
  }
  return 0;
}
