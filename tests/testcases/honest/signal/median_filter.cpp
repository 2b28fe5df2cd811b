// A median of nine by a partial sort.
#include <grove/kernel.h>

#include <algorithm>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int s = 0; s < 2; ++s)
    for (int p = 0; p < 196; ++p) {
      float v[9];
      for (int k = 0; k < 9; ++k) v[k] = x[(s * 16 + p / 14 + k / 3) * 16 + p % 14 + k % 3];
      std::nth_element(v, v + 4, v + 9);
      y[s * 196 + p] = v[4];
    }
  return 0;
}
