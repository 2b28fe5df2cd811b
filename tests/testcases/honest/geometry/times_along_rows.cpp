// Walks along each series.
#include <grove/kernel.h>
GROVE_KERNEL(args) {
  const float *t = (const float*)args->inputs[0].data, *x = (const float*)args->inputs[1].data, *g = (const float*)args->inputs[2].data;
  float* y = (float*)args->outputs[0].data;
  const int n = (int)args->inputs[0].shape[0], m = (int)args->inputs[0].shape[1], q = (int)args->inputs[2].shape[0];
  for (int j = 0; j < m; ++j)
    for (int k = 0; k < q; ++k) {
      int i = 1;
      while (i < n - 1 && t[i * m + j] < g[k * m + j]) ++i;
      const float a = t[(i - 1) * m + j], b = t[i * m + j], u = x[(i - 1) * m + j], v = x[i * m + j];
      y[k * m + j] = u + (v - u) * (g[k * m + j] - a) / (b - a);
    }
  return 0;
}
