// A triangular system solved forward.
#include <grove/kernel.h>

GROVE_KERNEL(args) {
  const float* a = static_cast<const float*>(args->inputs[0].data);
  const float* b = static_cast<const float*>(args->inputs[1].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int s = 0; s < 4; ++s)
    for (int c = 0; c < 5; ++c)
      for (int i = 0; i < 24; ++i) {
        float t = b[(s * 24 + i) * 5 + c];
        for (int k = 0; k < i; ++k) t -= 0.2f * a[(s * 24 + i) * 24 + k] * y[(s * 24 + k) * 5 + c];
        y[(s * 24 + i) * 5 + c] = t;
      }
  return 0;
}
