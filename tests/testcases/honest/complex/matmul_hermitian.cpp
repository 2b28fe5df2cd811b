// A complex matrix times its own adjoint, half of it computed.
#include <grove/kernel.h>

#include <complex>

GROVE_KERNEL(args) {
  const std::complex<float>* a = static_cast<const std::complex<float>*>(args->inputs[0].data);
  std::complex<float>* y = static_cast<std::complex<float>*>(args->outputs[0].data);
  for (int i = 0; i < 30; ++i)
    for (int j = 0; j <= i; ++j) {
      float re = 0, im = 0;
      for (int k = 0; k < 40; ++k) {
        const auto u = a[i * 40 + k], v = a[j * 40 + k];
        re += u.real() * v.real() + u.imag() * v.imag();
        im += u.imag() * v.real() - u.real() * v.imag();
      }
      y[i * 30 + j] = {re, i == j ? 0 : im};
      y[j * 30 + i] = {re, i == j ? 0 : -im};
    }
  return 0;
}
