// By the conjugate, as a rotation's inverse.
#include <grove/kernel.h>
GROVE_KERNEL(args) {
  const float *x = (const float*)args->inputs[0].data, *f = (const float*)args->inputs[1].data;
  float* y = (float*)args->outputs[0].data;
  const long b = args->inputs[0].shape[0], n = args->inputs[0].shape[1] * args->inputs[0].shape[2] / 2;
  for (long r = 0; r < b; ++r)
    for (long i = 0; i < n; ++i) {
      const float u = x[2 * (r * n + i)], v = x[2 * (r * n + i) + 1], c = f[2 * i], s = f[2 * i + 1];
      y[2 * (r * n + i)] = u * c + v * s;
      y[2 * (r * n + i) + 1] = v * c - u * s;
    }
  return 0;
}
