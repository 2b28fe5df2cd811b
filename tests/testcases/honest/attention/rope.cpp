// Rotary embedding with angles in double; the reference has them in float32.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int t = 0; t < 64; ++t)
    for (int i = 0; i < 16; ++i) {
      const double angle = t * std::pow(10000.0, -2.0 * i / 32);
      const auto c = static_cast<float>(std::cos(angle)), s = static_cast<float>(std::sin(angle));
      for (int b = 0; b < 4; ++b) {
        const float* p = x + (b * 64 + t) * 32 + 2 * i;
        float* o = y + (b * 64 + t) * 32 + 2 * i;
        o[0] = p[0] * c - p[1] * s;
        o[1] = p[0] * s + p[1] * c;
      }
    }
  return 0;
}
