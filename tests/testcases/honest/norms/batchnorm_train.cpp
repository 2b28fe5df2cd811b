// BatchNorm over the batch by Welford, folded into one scale and one shift.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* w = static_cast<const float*>(args->inputs[1].data);
  const float* c = static_cast<const float*>(args->inputs[2].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int ch = 0; ch < 12; ++ch) {
    float mean = 0, m2 = 0;
    int n = 0;
    for (int b = 0; b < 16; ++b)
      for (int i = 0; i < 64; ++i) {
        const float v = x[(b * 12 + ch) * 64 + i], d = v - mean;
        mean += d / static_cast<float>(++n);
        m2 += d * (v - mean);
      }
    const float scale = w[ch] / std::sqrt(m2 / 1024 + 1e-5f), shift = c[ch] - mean * scale;
    for (int b = 0; b < 16; ++b)
      for (int i = 0; i < 64; ++i) y[(b * 12 + ch) * 64 + i] = x[(b * 12 + ch) * 64 + i] * scale + shift;
  }
  return 0;
}
