// Distances by |a|² + |b|² - 2 a·b, in double.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>

GROVE_KERNEL(args) {
  const float* a = static_cast<const float*>(args->inputs[0].data);
  const float* b = static_cast<const float*>(args->inputs[1].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int i = 0; i < 60; ++i)
    for (int j = 0; j < 70; ++j) {
      double s = 0;
      for (int k = 0; k < 5; ++k) {
        const double u = a[i * 5 + k], v = b[j * 5 + k];
        s += u * u + v * v - 2 * u * v;
      }
      y[i * 70 + j] = static_cast<float>(std::sqrt(std::max(s, 0.0)));
    }
  return 0;
}
