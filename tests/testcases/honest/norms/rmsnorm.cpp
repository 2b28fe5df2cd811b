// RMSNorm with the reciprocal of the root.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* w = static_cast<const float*>(args->inputs[1].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int r = 0; r < 32; ++r) {
    float s[8] = {};
    for (int k = 0; k < 512; ++k) s[k % 8] = std::fma(x[r * 512 + k], x[r * 512 + k], s[k % 8]);
    const float all = ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
    const float scale = 1 / std::sqrt(all / 512 + 1e-6f);
    for (int k = 0; k < 512; ++k) y[r * 512 + k] = x[r * 512 + k] * (scale * w[k]);
  }
  return 0;
}
