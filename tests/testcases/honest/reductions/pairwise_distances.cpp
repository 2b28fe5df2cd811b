// One float for each distance.
#include <grove/kernel.h>
#include <cmath>
GROVE_KERNEL(args) {
  const float* x = (const float*)args->inputs[0].data;
  float* y = (float*)args->outputs[0].data;
  const int m = (int)args->inputs[0].shape[0], k = (int)args->inputs[0].shape[1];
  long o = 0;
  for (int i = 0; i < m; ++i)
    for (int j = i + 1; j < m; ++j) {
      float s = 0;
      for (int l = 0; l < k; ++l) { const float d = x[i * k + l] - x[j * k + l]; s += d * d; }
      y[o++] = std::sqrt(s);
    }
  return 0;
}
