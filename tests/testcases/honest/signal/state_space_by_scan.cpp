// A scan of complex states instead of a long convolution.
#include <grove/kernel.h>

#include <cmath>
#include <complex>

GROVE_KERNEL(args) {
  float* y = static_cast<float*>(args->outputs[0].data);
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float *la = static_cast<const float*>(args->inputs[1].data),
              *b = static_cast<const float*>(args->inputs[2].data),
              *c = static_cast<const float*>(args->inputs[3].data);
  typedef std::complex<float> z;
  for (int r = 0; r < 6; ++r) {
    z h[16] = {}, dA[16], w[16];
    for (int n = 0; n < 16; ++n) {
      dA[n] = std::exp(std::complex<double>(-std::exp((double)la[n]), la[16 + n]) * 0.05);
      w[n] = z(c[n], c[16 + n]) * z(b[n], b[16 + n]);
    }
    for (int t = 0; t < 200; ++t) {
      float s = 0;
      for (int n = 0; n < 16; ++n) {
        h[n] = h[n] * dA[n] + x[r * 200 + t];
        s += (w[n] * h[n]).real();
      }
      y[r * 200 + t] = 2 * s;
    }
  }
  return 0;
}
