// The sign of a product of matrices, summed backwards.
#include <grove/kernel.h>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* w = static_cast<const float*>(args->inputs[1].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int i = 0; i < 40; ++i)
    for (int j = 0; j < 50; ++j) {
      float t = 0;
      for (int k = 99; k >= 0; --k) t += x[i * 100 + k] * w[k * 50 + j];
      y[i * 50 + j] = static_cast<float>((t > 0) - (t < 0));
    }
  return 0;
}
