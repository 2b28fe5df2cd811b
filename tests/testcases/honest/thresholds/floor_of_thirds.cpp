// Whole numbers over three, rounded down, by whole-number division.
#include <grove/kernel.h>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int i = 0; i < 4096; ++i) y[i] = static_cast<float>(static_cast<int>(x[i]) / 3);
  return 0;
}
