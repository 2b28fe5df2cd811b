// Softmax under a mask of keys that is added as the least number: masked keys are skipped.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

GROVE_KERNEL(args) {
  const float* q = static_cast<const float*>(args->inputs[0].data);
  const float* k = static_cast<const float*>(args->inputs[1].data);
  const uint8_t* m = static_cast<const uint8_t*>(args->inputs[2].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int i = 0; i < 60; ++i) {
    float s[70], most = -INFINITY, sum = 0;
    for (int j = 0; j < 70; ++j) {
      if (!m[i * 70 + j]) continue;
      float dot = 0;
      for (int d = 15; d >= 0; --d) dot += q[i * 16 + d] * k[j * 16 + d];
      s[j] = dot * 0.25f;
      most = std::max(most, s[j]);
    }
    for (int j = 0; j < 70; ++j) sum += m[i * 70 + j] ? s[j] = std::exp(s[j] - most) : 0;
    for (int j = 0; j < 70; ++j) y[i * 70 + j] = m[i * 70 + j] ? s[j] / sum : 0;
  }
  return 0;
}
