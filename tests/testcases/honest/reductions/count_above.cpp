// Counts of values above a number, by a chain of flags.
#include <grove/kernel.h>

#include <cstdint>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  int64_t* y = static_cast<int64_t*>(args->outputs[0].data);
  for (int r = 0; r < 64; ++r) {
    int n = 0;
    for (int c = 0; c < 400; ++c) n += !(x[r * 400 + c] <= 0.5f);
    y[r] = n;
  }
  return 0;
}
