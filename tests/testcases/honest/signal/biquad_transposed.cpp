// The transposed form of the filter.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  float* y = static_cast<float*>(args->outputs[0].data);
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float *b = static_cast<const float*>(args->inputs[1].data),
              *c = static_cast<const float*>(args->inputs[2].data);
  for (int r = 0; r < 8; ++r) {
    float s1 = 0, s2 = 0;
    for (int t = 0; t < 200; ++t) {
      float v = x[r * 200 + t], o = b[0] * v + s1;
      s1 = b[1] * v - c[0] * o + s2;
      s2 = b[2] * v - c[1] * o;
      y[r * 200 + t] = o;
    }
  }
  return 0;
}
