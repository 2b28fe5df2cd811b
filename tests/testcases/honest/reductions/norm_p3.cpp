// The 3-norm by cubes and a cube root.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int r = 0; r < 50; ++r) {
    float sum = 0;
    for (int c = 0; c < 333; ++c) {
      const float v = std::fabs(x[r * 333 + c]);
      sum += v * v * v;
    }
    y[r] = std::cbrt(sum);
  }
  return 0;
}
