// A convolution of 256 by transforms of 512.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <vector>

namespace {
using Complex = std::complex<float>;
void Fft(std::vector<Complex> &a, bool back) {
  const int n = static_cast<int>(a.size());
  for (int i = 1, j = 0; i < n; ++i) {
    int bit = n >> 1;
    for (; j & bit; bit >>= 1)
      j ^= bit;
    if (i < (j ^= bit))
      std::swap(a[i], a[j]);
  }
  for (int size = 2; size <= n; size *= 2)
    for (int k = 0; k < size / 2; ++k) {
      const double t = (back ? 2 : -2) * 3.14159265358979323846 * k / size;
      const Complex r(static_cast<float>(std::cos(t)),
                      static_cast<float>(std::sin(t)));
      for (int i = k; i < n; i += size) {
        const Complex u = a[i], v = a[i + size / 2] * r;
        a[i] = u + v;
        a[i + size / 2] = u - v;
      }
    }
}
} // namespace

GROVE_KERNEL(args) {
  const float *x = static_cast<const float *>(args->inputs[0].data);
  const float *w = static_cast<const float *>(args->inputs[1].data);
  float *y = static_cast<float *>(args->outputs[0].data);
  std::vector<Complex> f(512);
  for (int i = 0; i < 64; ++i)
    f[i] = w[i];
  Fft(f, false);
  for (int b = 0; b < 8; ++b) {
    std::vector<Complex> a(512);
    for (int i = 0; i < 256; ++i)
      a[i] = x[b * 256 + i];
    Fft(a, false);
    for (int i = 0; i < 512; ++i)
      a[i] *= f[i];
    Fft(a, true);
    for (int i = 0; i < 256; ++i)
      y[b * 256 + i] = a[i].real() / 512;
  }
  return 0;
}
