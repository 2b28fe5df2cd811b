// Attention with linear biases, weights of the softmax in double.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>

GROVE_KERNEL(args) {
  const float* q = static_cast<const float*>(args->inputs[0].data);
  const float* k = static_cast<const float*>(args->inputs[1].data);
  const float* v = static_cast<const float*>(args->inputs[2].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  const float slope[3] = {0.5f, 0.25f, 0.125f};
  for (int h = 0; h < 3; ++h)
    for (int i = 0; i < 40; ++i) {
      double sum = 0, acc[8] = {};
      float s[40], most = -INFINITY;
      for (int j = 0; j < 40; ++j) {
        float dot = 0;
        for (int d = 0; d < 16; ++d) dot = std::fma(q[(h * 40 + i) * 16 + d], k[(h * 40 + j) * 16 + d], dot);
        s[j] = dot * 0.25f - slope[h] * std::fabs(static_cast<float>(i - j));
        most = std::max(most, s[j]);
      }
      for (int j = 0; j < 40; ++j) {
        const double e = std::exp(static_cast<double>(s[j]) - most);
        sum += e;
        for (int d = 0; d < 8; ++d) acc[d] += e * v[(h * 40 + j) * 8 + d];
      }
      for (int d = 0; d < 8; ++d) y[(h * 40 + i) * 8 + d] = static_cast<float>(acc[d] / sum);
    }
  return 0;
}
