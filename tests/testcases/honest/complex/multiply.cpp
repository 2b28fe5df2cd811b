// A product of complex numbers with three multiplications.
#include <grove/kernel.h>

#include <complex>

GROVE_KERNEL(args) {
  const std::complex<float>* a = static_cast<const std::complex<float>*>(args->inputs[0].data);
  const std::complex<float>* b = static_cast<const std::complex<float>*>(args->inputs[1].data);
  std::complex<float>* y = static_cast<std::complex<float>*>(args->outputs[0].data);
  for (int i = 0; i < 2000; ++i) {
    const float p = a[i].real(), q = a[i].imag(), r = b[i].real(), s = b[i].imag();
    const float k = r * (p + q), l = p * (s - r), m = q * (r + s);
    y[i] = {k - m, k + l};
  }
  return 0;
}
