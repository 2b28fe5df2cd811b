// Sums of tenths against a whole number: ties that rounding decides, summed in another order.
#include <grove/kernel.h>

#include <cstdint>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  int64_t* y = static_cast<int64_t*>(args->outputs[0].data);
  for (int r = 0; r < 400; ++r) {
    float s = 0;
    for (int c = 8; c >= 0; --c) s += x[r * 9 + c];
    y[r] = s > 3;
  }
  return 0;
}
