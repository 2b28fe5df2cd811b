// Reads what is above the diagonal.
#include <grove/kernel.h>
#include <vector>
GROVE_KERNEL(args) {
  const float *a = (const float*)args->inputs[0].data, *x = (const float*)args->inputs[1].data;
  float* y = (float*)args->outputs[0].data;
  const int b = (int)args->inputs[0].shape[0], n = (int)args->inputs[0].shape[1], m = (int)args->inputs[1].shape[2];
  std::vector<double> s(n * m);
  for (int r = 0; r < b; ++r) {
    s.assign(n * m, 0);
    for (int i = 0; i < n; ++i)
      for (int j = i + 1; j < n; ++j) {
        const double v = a[(r * n + i) * n + j];
        for (int c = 0; c < m; ++c) {
          s[i * m + c] += v * x[(r * n + j) * m + c];
          s[j * m + c] -= v * x[(r * n + i) * m + c];
        }
      }
    for (int i = 0; i < n * m; ++i) y[r * n * m + i] = (float)s[i];
  }
  return 0;
}
