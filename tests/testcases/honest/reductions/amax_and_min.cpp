// Largest, least and their distance in one pass.
#include <grove/kernel.h>

#include <algorithm>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* a = static_cast<float*>(args->outputs[0].data);
  float* b = static_cast<float*>(args->outputs[1].data);
  float* c = static_cast<float*>(args->outputs[2].data);
  for (int r = 0; r < 90; ++r) {
    float low = x[r * 257], high = low;
    for (int k = 1; k < 257; ++k) low = std::min(low, x[r * 257 + k]), high = std::max(high, x[r * 257 + k]);
    a[r] = high;
    b[r] = low;
    c[r] = high - low;
  }
  return 0;
}
