// Causal attention that stops at the diagonal; the reference masks with minus infinity.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>

GROVE_KERNEL(args) {
  const float* q = static_cast<const float*>(args->inputs[0].data);
  const float* k = static_cast<const float*>(args->inputs[1].data);
  const float* v = static_cast<const float*>(args->inputs[2].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int h = 0; h < 8; ++h)
    for (int i = 0; i < 48; ++i) {
      float most = -INFINITY, sum = 0, acc[32] = {};
      for (int j = 0; j <= i; ++j) {
        float dot = 0;
        for (int d = 0; d < 32; ++d) dot += q[(h * 48 + i) * 32 + d] * k[(h * 48 + j) * 32 + d];
        dot *= 0.17677669529663687f;
        const float next = std::max(most, dot), keep = std::exp(most - next), e = std::exp(dot - next);
        sum = sum * keep + e;
        for (int d = 0; d < 32; ++d) acc[d] = acc[d] * keep + e * v[(h * 48 + j) * 32 + d];
        most = next;
      }
      for (int d = 0; d < 32; ++d) y[(h * 48 + i) * 32 + d] = acc[d] / sum;
    }
  return 0;
}
