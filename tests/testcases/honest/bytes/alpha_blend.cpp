// Whole-number arithmetic in place of a division of floats.
#include <grove/kernel.h>

#include <cstdint>

GROVE_KERNEL(args) {
  const uint8_t *a = static_cast<const uint8_t *>(args->inputs[0].data);
  const uint8_t *b = static_cast<const uint8_t *>(args->inputs[1].data);
  const uint8_t *alpha = static_cast<const uint8_t *>(args->inputs[2].data);
  uint8_t *y = static_cast<uint8_t *>(args->outputs[0].data);
  for (int i = 0; i < 3 * 48 * 64; ++i)
    y[i] =
        static_cast<uint8_t>((a[i] * alpha[i] + b[i] * (255 - alpha[i])) / 255);
  return 0;
}
