// Cholesky's factor by columns.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const float* a = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int b = 0; b < 10; ++b) {
    const float* p = a + b * 144;
    float* l = y + b * 144;
    for (int i = 0; i < 144; ++i) l[i] = 0;
    for (int j = 0; j < 12; ++j) {
      float d = p[j * 13];
      for (int k = 0; k < j; ++k) d -= l[j * 12 + k] * l[j * 12 + k];
      l[j * 13] = std::sqrt(d);
      for (int i = j + 1; i < 12; ++i) {
        float s = p[i * 12 + j];
        for (int k = 0; k < j; ++k) s -= l[i * 12 + k] * l[j * 12 + k];
        l[i * 12 + j] = s / l[j * 13];
      }
    }
  }
  return 0;
}
