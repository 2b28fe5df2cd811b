// Weighs the rows of x first, and adds products in one run.
#include <grove/kernel.h>

#include <cmath>
#include <cstring>

GROVE_KERNEL(args) {
  const float* e = (const float*)args->inputs[0].data;
  const float* x = (const float*)args->inputs[1].data;
  const float* w = (const float*)args->inputs[2].data;
  float* y = (float*)args->outputs[0].data;
  const int64_t m = args->inputs[1].shape[0], k = args->inputs[1].shape[1], n = args->inputs[2].shape[1];
  std::memset(y, 0, sizeof(float) * m * n);
  for (int64_t i = 0; i < m; ++i) {
    const float weight = expf(e[i]);
    for (int64_t l = 0; l < k; ++l) {
      const float v = weight * x[i * k + l];
      for (int64_t j = 0; j < n; ++j) y[i * n + j] += v * w[l * n + j];
    }
  }
  return 0;
}
