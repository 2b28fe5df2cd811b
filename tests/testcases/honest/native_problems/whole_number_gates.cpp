// Whole numbers of a native problem: gates by comparison and a count.
#include <grove/kernel.h>

#include <cstdint>

GROVE_KERNEL(args) {
  const int64_t* x = static_cast<const int64_t*>(args->inputs[0].data);
  const float* g = static_cast<const float*>(args->inputs[1].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  int64_t* n = static_cast<int64_t*>(args->outputs[1].data);
  for (int r = 0; r < 30; ++r) {
    n[r] = 0;
    for (int c = r * 40; c < r * 40 + 40; ++c) {
      y[c] = x[c] > 4 ? g[c] : 0;
      n[r] += x[c] > 4;
    }
  }
  return 0;
}
