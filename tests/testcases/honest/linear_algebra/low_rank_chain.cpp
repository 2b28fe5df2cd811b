// A chain of three products from the right.
#include <grove/kernel.h>

GROVE_KERNEL(args) {
  const float* a = static_cast<const float*>(args->inputs[0].data);
  const float* b = static_cast<const float*>(args->inputs[1].data);
  const float* c = static_cast<const float*>(args->inputs[2].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  float m[80] = {};
  for (int i = 0; i < 8; ++i)
    for (int k = 0; k < 60; ++k)
      for (int j = 0; j < 10; ++j) m[i * 10 + j] += b[i * 60 + k] * c[k * 10 + j];
  for (int i = 0; i < 60; ++i)
    for (int j = 0; j < 10; ++j) {
      float s = 0;
      for (int k = 0; k < 8; ++k) s += a[i * 8 + k] * m[k * 10 + j];
      y[i * 10 + j] = s;
    }
  return 0;
}
