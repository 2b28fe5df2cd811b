// The gradient of a layer norm by its formula.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const float *x = static_cast<const float *>(args->inputs[0].data);
  const float *g = static_cast<const float *>(args->inputs[1].data);
  float *y = static_cast<float *>(args->outputs[0].data);
  for (int i = 0; i < 40; ++i) {
    const float *r = x + i * 96, *d = g + i * 96;
    float m = 0, v = 0, a = 0, b = 0;
    for (int j = 0; j < 96; ++j)
      m += r[j];
    m /= 96;
    for (int j = 0; j < 96; ++j)
      v += (r[j] - m) * (r[j] - m);
    const float s = 1 / std::sqrt(v / 96 + 1e-5f);
    for (int j = 0; j < 96; ++j)
      a += d[j], b += d[j] * (r[j] - m) * s;
    for (int j = 0; j < 96; ++j)
      y[i * 96 + j] = s * (d[j] - a / 96 - (r[j] - m) * s * b / 96);
  }
  return 0;
}
