// A dead zone with a jump at its border, of a polynomial evaluated by Horner's rule.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int i = 0; i < 3000; ++i) {
    const float p = x[i] * std::fma(x[i], std::fma(0.5f, x[i], -1.f), 0.3f);
    y[i] = std::fabs(p) < 0.2f ? 0 : p;
  }
  return 0;
}
