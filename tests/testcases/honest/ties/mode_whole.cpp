// The value that comes most often, the least of equally frequent ones, by counting.
#include <grove/kernel.h>

#include <cstdint>

GROVE_KERNEL(args) {
  const int64_t* x = static_cast<const int64_t*>(args->inputs[0].data);
  int64_t* y = static_cast<int64_t*>(args->outputs[0].data);
  for (int r = 0; r < 50; ++r) {
    int n[7] = {};
    for (int c = 0; c < 40; ++c) ++n[x[r * 40 + c]];
    y[r] = 0;
    for (int k = 1; k < 7; ++k)
      if (n[k] > n[y[r]]) y[r] = k;
  }
  return 0;
}
