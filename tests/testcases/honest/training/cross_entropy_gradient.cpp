// Softmax less one-hot.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

GROVE_KERNEL(args) {
  const float *x = static_cast<const float *>(args->inputs[0].data);
  const int64_t *t = static_cast<const int64_t *>(args->inputs[1].data);
  float *l = static_cast<float *>(args->outputs[0].data);
  float *g = static_cast<float *>(args->outputs[1].data);
  double all = 0;
  for (int i = 0; i < 50; ++i) {
    const float *r = x + i * 30;
    const float m = *std::max_element(r, r + 30);
    float z = 0;
    for (int j = 0; j < 30; ++j)
      z += std::exp(r[j] - m);
    for (int j = 0; j < 30; ++j)
      g[i * 30 + j] = (std::exp(r[j] - m) / z - (j == t[i])) / 50;
    all += std::log(z) + m - r[t[i]];
  }
  *l = static_cast<float>(all / 50);
  return 0;
}
