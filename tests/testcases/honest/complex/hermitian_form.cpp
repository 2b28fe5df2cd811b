// The diagonal, and twice the real part of what is above it.
#include <grove/kernel.h>
#include <complex>
using C = std::complex<float>;
GROVE_KERNEL(args) {
  const C* a = (const C*)args->inputs[0].data;
  const C* x = (const C*)args->inputs[1].data;
  float* y = (float*)args->outputs[0].data;
  const int b = (int)args->inputs[0].shape[0], n = (int)args->inputs[0].shape[1];
  for (int r = 0; r < b; ++r) {
    double s = 0;
    for (int i = 0; i < n; ++i) {
      const C xi = std::conj(x[r * n + i]);
      s += a[(r * n + i) * n + i].real() * std::norm(xi);
      for (int j = i + 1; j < n; ++j) s += 2 * (xi * a[(r * n + i) * n + j] * x[r * n + j]).real();
    }
    y[r] = (float)s;
  }
  return 0;
}
