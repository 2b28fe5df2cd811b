// Counts the larger ones.
#include <grove/kernel.h>
GROVE_KERNEL(args) {
  const float* x = (const float*)args->inputs[0].data;
  const float* l = (const float*)args->inputs[1].data;
  int64_t* y = (int64_t*)args->outputs[0].data;
  const long n = args->inputs[0].shape[0] * args->inputs[0].shape[1], k = args->inputs[1].shape[0];
  for (long i = 0; i < n; ++i) {
    int64_t c = 0;
    for (long j = 0; j < k; ++j) c += l[j] > x[i];
    y[i] = c;
  }
  return 0;
}
