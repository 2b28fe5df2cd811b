// One pass, one float32 accumulator.
#include <grove/kernel.h>

#include <cmath>
#include <cstdint>

GROVE_KERNEL(args) {
  const float *x = static_cast<const float *>(args->inputs[0].data);
  int64_t *y = static_cast<int64_t *>(args->outputs[0].data);
  const int64_t rows = args->inputs[0].shape[0], terms = args->inputs[0].shape[1];
  for (int64_t i = 0; i < rows; ++i) {
    float sum = 0, highest = -INFINITY;
    for (int64_t j = 0; j < terms; ++j) {
      sum += x[i * terms + j];
      if (sum > highest) {
        highest = sum;
        y[i] = j;
      }
    }
  }
  return 0;
}
