// Whole numbers held as floats, compared with a whole number.
#include <grove/kernel.h>

#include <cstdint>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  int64_t* n = static_cast<int64_t*>(args->outputs[1].data);
  for (int r = 0; r < 40; ++r) {
    n[r] = 0;
    for (int c = 0; c < 60; ++c) {
      y[r * 60 + c] = x[r * 60 + c] >= 4 ? 1 : 0;
      n[r] += x[r * 60 + c] > 2.5f;
    }
  }
  return 0;
}
