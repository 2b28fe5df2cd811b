// Products of quantised numbers in whole numbers, scaled once.
#include <grove/kernel.h>

#include <cmath>
#include <cstdint>

GROVE_KERNEL(args) {
  const uint8_t *x = static_cast<const uint8_t *>(args->inputs[0].data);
  const uint8_t *w = static_cast<const uint8_t *>(args->inputs[1].data);
  uint8_t *y = static_cast<uint8_t *>(args->outputs[0].data);
  for (int i = 0; i < 24; ++i)
    for (int j = 0; j < 32; ++j) {
      int s = 0;
      for (int k = 0; k < 40; ++k)
        s += (x[i * 40 + k] - 128) * (w[k * 32 + j] - 120);
      const float v =
          std::rint(static_cast<float>(s) * (0.02f * 0.015f / 0.1f)) + 100;
      y[i * 32 + j] = static_cast<uint8_t>(std::fmin(std::fmax(v, 0.f), 255.f));
    }
  return 0;
}
