// By a power of two, whose exponent is rounded once more.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const float* x = (const float*)args->inputs[0].data;
  float* y = (float*)args->outputs[0].data;
  const int64_t n = args->inputs[0].shape[0] * args->inputs[0].shape[1];
  for (int64_t i = 0; i < n; ++i) y[i] = exp2f(x[i] * 1.44269504f);
  return 0;
}
