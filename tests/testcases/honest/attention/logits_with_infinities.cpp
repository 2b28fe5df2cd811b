// In one pass, with the maximum so far.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const float* x = (const float*)args->inputs[0].data;
  float* y = (float*)args->outputs[0].data;
  const int64_t m = args->inputs[0].shape[0], n = args->inputs[0].shape[1];
  for (int64_t i = 0; i < m; ++i, x += n, y += n) {
    float largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < n; ++j) {
      if (x[j] > largest) {
        sum *= expf(largest - x[j]);
        largest = x[j];
      }
      if (x[j] > -INFINITY) sum += expf(x[j] - largest);
    }
    for (int64_t j = 0; j < n; ++j) y[j] = expf(x[j] - largest) / sum;
  }
  return 0;
}
