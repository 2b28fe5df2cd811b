// Flags of sums of whole halves that are often exactly zero.
#include <grove/kernel.h>

#include <cstdint>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  uint8_t* y = static_cast<uint8_t*>(args->outputs[0].data);
  for (int r = 0; r < 500; ++r) {
    float s = 0;
    for (int c = 5; c >= 0; --c) s += x[r * 6 + c];
    y[r] = s > 0;
  }
  return 0;
}
