// Goes through the knots from the left.
#include <grove/kernel.h>
GROVE_KERNEL(args) {
  const float* x = (const float*)args->inputs[0].data;
  const float* xp = (const float*)args->inputs[1].data;
  const float* fp = (const float*)args->inputs[2].data;
  float* y = (float*)args->outputs[0].data;
  const long n = args->inputs[0].shape[0] * args->inputs[0].shape[1], k = args->inputs[1].shape[0];
  for (long i = 0; i < n; ++i) {
    long j = 1;
    while (j < k - 1 && x[i] > xp[j]) ++j;
    y[i] = fp[j - 1] + (fp[j] - fp[j - 1]) * (x[i] - xp[j - 1]) / (xp[j] - xp[j - 1]);
  }
  return 0;
}
