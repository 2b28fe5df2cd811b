// A bilinear form by two steps.
#include <grove/kernel.h>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* z = static_cast<const float*>(args->inputs[1].data);
  const float* w = static_cast<const float*>(args->inputs[2].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int b = 0; b < 20; ++b)
    for (int o = 0; o < 9; ++o) {
      float s = 0;
      for (int i = 0; i < 12; ++i) {
        float t = 0;
        for (int j = 0; j < 14; ++j) t += w[(o * 12 + i) * 14 + j] * z[b * 14 + j];
        s += t * x[b * 12 + i];
      }
      y[b * 9 + o] = s;
    }
  return 0;
}
