// Pixels brighter than their image's mean, by whole-number arithmetic.
#include <grove/kernel.h>

#include <cstdint>

GROVE_KERNEL(args) {
  const uint8_t* x = static_cast<const uint8_t*>(args->inputs[0].data);
  uint8_t* y = static_cast<uint8_t*>(args->outputs[0].data);
  for (int b = 0; b < 8; ++b) {
    int64_t s = 0;
    for (int i = 0; i < 899; ++i) s += x[b * 899 + i];
    for (int i = 0; i < 899; ++i) y[b * 899 + i] = static_cast<int64_t>(x[b * 899 + i]) * 899 > s;
  }
  return 0;
}
