// By Cholesky's decomposition, in double.
#include <grove/kernel.h>
#include <cmath>
#include <vector>
GROVE_KERNEL(args) {
  const float* k = (const float*)args->inputs[0].data;
  const float* v = (const float*)args->inputs[1].data;
  float* w = (float*)args->outputs[0].data;
  const int b = (int)args->inputs[0].shape[0], n = (int)args->inputs[0].shape[1], m = (int)args->inputs[1].shape[2];
  std::vector<double> l(n * n), z(n);
  for (int r = 0; r < b; ++r) {
    const float* a = k + r * n * n;
    for (int i = 0; i < n; ++i)
      for (int j = 0; j <= i; ++j) {
        double s = a[i * n + j];
        for (int t = 0; t < j; ++t) s -= l[i * n + t] * l[j * n + t];
        l[i * n + j] = i == j ? std::sqrt(s) : s / l[j * n + j];
      }
    for (int c = 0; c < m; ++c) {
      for (int i = 0; i < n; ++i) {
        double s = v[(r * n + i) * m + c];
        for (int t = 0; t < i; ++t) s -= l[i * n + t] * z[t];
        z[i] = s / l[i * n + i];
      }
      for (int i = n - 1; i >= 0; --i) {
        double s = z[i];
        for (int t = i + 1; t < n; ++t) s -= l[t * n + i] * z[t];
        z[i] = s / l[i * n + i];
        w[(r * n + i) * m + c] = (float)z[i];
      }
    }
  }
  return 0;
}
