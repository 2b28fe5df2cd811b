// How long points stay bounded, in real arithmetic.
#include <grove/kernel.h>

#include <complex>
#include <cstdint>

GROVE_KERNEL(args) {
  const std::complex<float>* c = static_cast<const std::complex<float>*>(args->inputs[0].data);
  int64_t* y = static_cast<int64_t*>(args->outputs[0].data);
  for (int i = 0; i < 2000; ++i) {
    float a = 0, b = 0;
    y[i] = 0;
    for (int k = 0; k < 12; ++k) {
      const float t = (a + b) * (a - b) + c[i].real();
      b = 2 * a * b + c[i].imag();
      a = t;
      if (a * a + b * b > 4) break;
      ++y[i];
    }
  }
  return 0;
}
