// The nearest of eight centres by |c|² - 2 c·x, as against distances.
#include <grove/kernel.h>

#include <cmath>
#include <cstdint>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* c = static_cast<const float*>(args->inputs[1].data);
  int64_t* y = static_cast<int64_t*>(args->outputs[0].data);
  for (int i = 0; i < 500; ++i) {
    float best = INFINITY;
    for (int k = 0; k < 8; ++k) {
      float s = 0;
      for (int d = 0; d < 6; ++d) s += c[k * 6 + d] * (c[k * 6 + d] - 2 * x[i * 6 + d]);
      if (s < best) best = s, y[i] = k;
    }
  }
  return 0;
}
