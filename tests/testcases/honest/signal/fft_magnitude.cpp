// Magnitudes of a real transform by a radix-2 FFT of its own, factors in double.
#include <grove/kernel.h>

#include <cmath>
#include <complex>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int r = 0; r < 10; ++r) {
    std::complex<float> a[128];
    for (int i = 0; i < 128; ++i) {
      int j = 0;
      for (int k = 0; k < 7; ++k) j |= (i >> k & 1) << (6 - k);
      a[j] = x[r * 128 + i];
    }
    for (int n = 2; n <= 128; n *= 2)
      for (int b = 0; b < 128; b += n)
        for (int k = 0; k < n / 2; ++k) {
          const double t = -6.283185307179586 * k / n;
          const std::complex<float> w(static_cast<float>(std::cos(t)), static_cast<float>(std::sin(t)));
          const auto u = a[b + k], v = a[b + k + n / 2] * w;
          a[b + k] = u + v;
          a[b + k + n / 2] = u - v;
        }
    for (int k = 0; k < 65; ++k) y[r * 65 + k] = std::sqrt(std::norm(a[k]));
  }
  return 0;
}
