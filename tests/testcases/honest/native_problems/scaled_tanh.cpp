// A hyperbolic tangent by powers of e, with a number among the inputs.
#include <grove/kernel.h>

#include <cmath>
#include <cstdint>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const double* s = static_cast<const double*>(args->inputs[1].data);
  const float* w = static_cast<const float*>(args->inputs[2].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  const int64_t rows = args->inputs[0].shape[0];
  for (int64_t i = 0; i < rows * 64; ++i) {
    const float v = std::fabs(x[i] * static_cast<float>(s[0])), e = std::expm1(-2 * v);
    y[i] = std::copysign(-e / (e + 2), x[i]) * w[i % 64];
  }
  return 0;
}
