// Grouped-query attention in float16 with float32 inside.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>

GROVE_KERNEL(args) {
  const _Float16* q = static_cast<const _Float16*>(args->inputs[0].data);
  const _Float16* k = static_cast<const _Float16*>(args->inputs[1].data);
  const _Float16* v = static_cast<const _Float16*>(args->inputs[2].data);
  _Float16* y = static_cast<_Float16*>(args->outputs[0].data);
  for (int h = 0; h < 4; ++h)
    for (int i = 0; i < 24; ++i) {
      float most = -INFINITY, sum = 0, acc[16] = {};
      for (int j = 0; j < 24; ++j) {
        float dot = 0;
        for (int d = 0; d < 16; ++d)
          dot += static_cast<float>(q[(h * 24 + i) * 16 + d]) * static_cast<float>(k[(h / 2 * 24 + j) * 16 + d]);
        dot *= 0.25f;
        const float next = std::max(most, dot), keep = std::exp(most - next), e = std::exp(dot - next);
        sum = sum * keep + e;
        for (int d = 0; d < 16; ++d) acc[d] = acc[d] * keep + e * static_cast<float>(v[(h / 2 * 24 + j) * 16 + d]);
        most = next;
      }
      for (int d = 0; d < 16; ++d) y[(h * 24 + i) * 16 + d] = static_cast<_Float16>(acc[d] / sum);
    }
  return 0;
}
