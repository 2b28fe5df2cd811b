// Huber loss without a branch.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* z = static_cast<const float*>(args->inputs[1].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  double sum = 0;
  for (int i = 0; i < 3660; ++i) {
    const float d = std::fabs(x[i] - z[i]), m = std::min(d, 0.7f);
    sum += m * (d - 0.5f * m);
  }
  y[0] = static_cast<float>(sum / 0.7 / 3660);
  return 0;
}
