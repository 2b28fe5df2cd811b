// erf by a polynomial good to some 1e-7 absolutely, in double.
#include <grove/kernel.h>

#include <algorithm>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int i = 0; i < 4000; ++i) {
    const double v = std::max(-4.0, std::min<double>(x[i], 4.0));
    double sum = v, term = v;
    for (int k = 1; k < 100; ++k) {
      term *= -v * v / k;
      sum += term / (2 * k + 1);
    }
    y[i] = static_cast<float>(1 + 1.1283791670955126 * sum);
  }
  return 0;
}
