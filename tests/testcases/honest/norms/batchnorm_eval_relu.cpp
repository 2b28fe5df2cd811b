// BatchNorm in evaluation mode folded into a scale and a shift, then ReLU.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* w = static_cast<const float*>(args->inputs[1].data);
  const float* c = static_cast<const float*>(args->inputs[2].data);
  const float* rm = static_cast<const float*>(args->inputs[3].data);
  const float* rv = static_cast<const float*>(args->inputs[4].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int ch = 0; ch < 10; ++ch) {
    const float scale = w[ch] / std::sqrt(rv[ch] + 1e-5f), shift = c[ch] - rm[ch] * scale;
    for (int b = 0; b < 8; ++b)
      for (int i = 0; i < 50; ++i) {
        const float v = std::fma(x[(b * 10 + ch) * 50 + i], scale, shift);
        y[(b * 10 + ch) * 50 + i] = v > 0 ? v : 0;
      }
  }
  return 0;
}
