// argmax and argmin of whole numbers, the first of equal ones.
#include <grove/kernel.h>

#include <cstdint>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  int64_t* y = static_cast<int64_t*>(args->outputs[0].data);
  int64_t* z = static_cast<int64_t*>(args->outputs[1].data);
  for (int r = 0; r < 100; ++r) {
    int hi = 39, lo = 39;
    for (int c = 38; c >= 0; --c) {
      if (x[r * 40 + c] >= x[r * 40 + hi]) hi = c;
      if (x[r * 40 + c] <= x[r * 40 + lo]) lo = c;
    }
    y[r] = hi;
    z[r] = lo;
  }
  return 0;
}
