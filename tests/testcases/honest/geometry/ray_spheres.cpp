// First hits of rays and spheres, minus one where there is none.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const float* o = static_cast<const float*>(args->inputs[0].data);
  const float* d = static_cast<const float*>(args->inputs[1].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int i = 0; i < 400; ++i) {
    float b = 0, c = -1;
    for (int k = 0; k < 3; ++k) b += o[i * 3 + k] * d[i * 3 + k], c += o[i * 3 + k] * o[i * 3 + k];
    const float q = b * b - c;
    y[i] = -1;
    if (q > 0 && -b - std::sqrt(q) > 0) y[i] = -b - std::sqrt(q);
  }
  return 0;
}
