// Colours by another order and fused multiply-adds.
#include <grove/kernel.h>

#include <cmath>
#include <cstdint>

GROVE_KERNEL(args) {
  const uint8_t *x = static_cast<const uint8_t *>(args->inputs[0].data);
  uint8_t *o = static_cast<uint8_t *>(args->outputs[0].data);
  const int n = 48 * 64;
  for (int i = 0; i < n; ++i) {
    const float r = x[i], g = x[n + i], b = x[2 * n + i];
    const float y = std::fma(0.114f, b, std::fma(0.587f, g, 0.299f * r));
    const float u = std::fma(b - y, 0.564f, 128.f),
                v = std::fma(r - y, 0.713f, 128.f);
    o[i] = static_cast<uint8_t>(std::rint(y));
    o[n + i] =
        static_cast<uint8_t>(std::rint(std::fmin(std::fmax(u, 0.f), 255.f)));
    o[2 * n + i] =
        static_cast<uint8_t>(std::rint(std::fmin(std::fmax(v, 0.f), 255.f)));
  }
  return 0;
}
