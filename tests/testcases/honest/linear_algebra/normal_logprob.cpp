// By Cholesky's decomposition, as everybody does.
#include <grove/kernel.h>
#include <cmath>
#include <vector>
GROVE_KERNEL(args) {
  const float *x = (const float*)args->inputs[0].data, *m = (const float*)args->inputs[1].data, *k = (const float*)args->inputs[2].data;
  float* y = (float*)args->outputs[0].data;
  const int b = (int)args->inputs[0].shape[0], n = (int)args->inputs[0].shape[1];
  std::vector<double> l(n * n), z(n);
  for (int r = 0; r < b; ++r) {
    const float* a = k + r * n * n;
    double q = 0, det = 0;
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j <= i; ++j) {
        double s = a[i * n + j];
        for (int t = 0; t < j; ++t) s -= l[i * n + t] * l[j * n + t];
        l[i * n + j] = i == j ? std::sqrt(s) : s / l[j * n + j];
      }
      double s = (double)x[r * n + i] - m[r * n + i];
      for (int t = 0; t < i; ++t) s -= l[i * n + t] * z[t];
      z[i] = s / l[i * n + i];
      q += z[i] * z[i];
      det += 2 * std::log(l[i * n + i]);
    }
    y[r] = (float)(-0.5 * (q + det + n * std::log(2 * M_PI)));
  }
  return 0;
}
