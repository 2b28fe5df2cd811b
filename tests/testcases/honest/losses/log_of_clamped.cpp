// Cross entropy of flags: one logarithm each, of whichever of the two is asked for.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  const float* t = static_cast<const float*>(args->inputs[1].data);
  for (int r = 0; r < 60; ++r) {
    float sum = 0;
    for (int c = 0; c < 400; ++c) {
      const float p = std::min(std::max(x[r * 400 + c], 1e-7f), static_cast<float>(1 - 1e-7));
      sum -= t[r * 400 + c] != 0 ? std::log(p) : std::log(1 - p);
    }
    y[r] = sum / 400;
  }
  return 0;
}
