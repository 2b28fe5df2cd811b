// Sequences one behind the other, softmax online.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  float* y = static_cast<float*>(args->outputs[0].data);
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float *k = static_cast<const float*>(args->inputs[1].data),
              *v = static_cast<const float*>(args->inputs[2].data);
  const int* c = static_cast<const int*>(args->inputs[3].data);
  for (int b = 0; b < 4; ++b)
    for (int i = c[b]; i < c[b + 1]; ++i)
      for (int h = 0; h < 2; ++h) {
        float m = -INFINITY, l = 0, o[16] = {};
        for (int j = c[b]; j < c[b + 1]; ++j) {
          float s = 0;
          for (int e = 0; e < 16; ++e) s += x[(i * 2 + h) * 16 + e] * k[(j * 2 + h) * 16 + e];
          s /= 4;
          float M = std::fmax(m, s), w = std::exp(m - M), p = std::exp(s - M);
          m = M;
          l = l * w + p;
          for (int e = 0; e < 16; ++e) o[e] = o[e] * w + p * v[(j * 2 + h) * 16 + e];
        }
        for (int e = 0; e < 16; ++e) y[(i * 2 + h) * 16 + e] = o[e] / l;
      }
  return 0;
}
