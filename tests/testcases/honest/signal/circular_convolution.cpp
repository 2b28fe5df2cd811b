// A circular convolution summed directly; the reference goes by transforms.
#include <grove/kernel.h>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* w = static_cast<const float*>(args->inputs[1].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int r = 0; r < 20; ++r)
    for (int t = 0; t < 96; ++t) {
      float s = 0;
      for (int k = 0; k < 96; ++k) s += x[r * 96 + (t - k + 96) % 96] * w[k];
      y[r * 96 + t] = s;
    }
  return 0;
}
