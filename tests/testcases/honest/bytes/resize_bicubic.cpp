// Cubic resizing of bytes by its definition.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace {
double Tap(double t) {
  t = std::fabs(t);
  return t <= 1  ? (1.25 * t - 2.25) * t * t + 1
         : t < 2 ? ((-0.75 * t + 3.75) * t - 6) * t + 3
                 : 0;
}
} // namespace

GROVE_KERNEL(args) {
  const uint8_t *x = static_cast<const uint8_t *>(args->inputs[0].data);
  uint8_t *y = static_cast<uint8_t *>(args->outputs[0].data);
  for (int i = 0; i < 48; ++i)
    for (int j = 0; j < 48; ++j) {
      const double p = (i + 0.5) / 2 - 0.5, q = (j + 0.5) / 2 - 0.5;
      const int a = static_cast<int>(std::floor(p)),
                b = static_cast<int>(std::floor(q));
      double s = 0;
      for (int u = -1; u < 3; ++u)
        for (int v = -1; v < 3; ++v)
          s += Tap(p - a - u) * Tap(q - b - v) *
               x[std::clamp(a + u, 0, 23) * 24 + std::clamp(b + v, 0, 23)];
      y[i * 48 + j] =
          static_cast<uint8_t>(std::fmin(std::fmax(std::rint(s), 0.0), 255.0));
    }
  return 0;
}
