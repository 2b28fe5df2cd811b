// A complex transform by its definition in double.
#include <grove/kernel.h>

#include <cmath>
#include <complex>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  std::complex<float>* y = static_cast<std::complex<float>*>(args->outputs[0].data);
  for (int r = 0; r < 12; ++r)
    for (int k = 0; k < 50; ++k) {
      double re = 0, im = 0;
      for (int t = 0; t < 50; ++t) {
        const double w = -6.283185307179586 * (k * t % 50) / 50;
        re += x[r * 50 + t] * std::cos(w);
        im += x[r * 50 + t] * std::sin(w);
      }
      y[r * 50 + k] = {static_cast<float>(re), static_cast<float>(im)};
    }
  return 0;
}
