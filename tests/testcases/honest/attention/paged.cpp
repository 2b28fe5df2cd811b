// Blocks of keys looked up as they come, softmax online.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  float* y = static_cast<float*>(args->outputs[0].data);
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float *k = static_cast<const float*>(args->inputs[1].data),
              *v = static_cast<const float*>(args->inputs[2].data);
  const int64_t *bt = static_cast<const int64_t*>(args->inputs[3].data),
                *ln = static_cast<const int64_t*>(args->inputs[4].data);
  for (int b = 0; b < 4; ++b)
    for (int h = 0; h < 4; ++h) {
      float m = -INFINITY, l = 0, acc[32] = {};
      for (int n = 0; n < ln[b]; ++n) {
        const int64_t at = ((bt[b * 6 + n / 8] * 8 + n % 8) * 4 + h) * 32;
        float s = 0;
        for (int i = 0; i < 32; ++i) s += x[(b * 4 + h) * 32 + i] * k[at + i];
        s *= 0.17677669529663689f;
        float M = std::fmax(m, s), c = std::exp(m - M), p = std::exp(s - M);
        l = l * c + p;
        for (int i = 0; i < 32; ++i) acc[i] = acc[i] * c + p * v[at + i];
        m = M;
      }
      for (int i = 0; i < 32; ++i) y[(b * 4 + h) * 32 + i] = acc[i] / l;
    }
  return 0;
}
