// One accumulator.
#include <grove/kernel.h>
#include <cmath>
GROVE_KERNEL(args) {
  const float *a = (const float*)args->inputs[0].data, *b = (const float*)args->inputs[1].data;
  const long n = args->inputs[0].shape[0] * args->inputs[0].shape[1];
  float s = 0;
  for (long i = 0; i < n; ++i) s += (a[i] - b[i]) * (a[i] - b[i]);
  *(float*)args->outputs[0].data = std::sqrt(s);
  return 0;
}
