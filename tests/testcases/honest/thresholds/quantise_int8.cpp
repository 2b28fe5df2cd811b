// Symmetric quantisation to int8 with the row's largest size, times the reciprocal of the step.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  int8_t* q = static_cast<int8_t*>(args->outputs[0].data);
  float* s = static_cast<float*>(args->outputs[1].data);
  for (int r = 0; r < 64; ++r) {
    float m = 0;
    for (int c = 0; c < 256; ++c) m = std::max(m, std::fabs(x[r * 256 + c]));
    s[r] = m / 127;
    const float inverse = 127 / m;
    for (int c = 0; c < 256; ++c) q[r * 256 + c] = static_cast<int8_t>(std::nearbyint(x[r * 256 + c] * inverse));
  }
  return 0;
}
