// A long sum with Kahan's compensation.
#include <grove/kernel.h>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int r = 0; r < 8; ++r) {
    float sum = 0, lost = 0;
    for (int c = 0; c < 20000; ++c) {
      const float term = x[r * 20000 + c] - lost, next = sum + term;
      lost = (next - sum) - term;
      sum = next;
    }
    y[r] = sum;
  }
  return 0;
}
