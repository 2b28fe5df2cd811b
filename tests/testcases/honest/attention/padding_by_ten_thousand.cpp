// Keys of padding are not looked at.
#include <grove/kernel.h>

#include <cmath>
#include <cstdint>

GROVE_KERNEL(args) {
  const float *q = (const float*)args->inputs[0].data, *k = (const float*)args->inputs[1].data;
  const float *v = (const float*)args->inputs[2].data, *mask = (const float*)args->inputs[3].data;
  float* out = (float*)args->outputs[0].data;
  const int64_t batch = args->inputs[0].shape[0], queries = args->inputs[0].shape[1], keys = args->inputs[1].shape[1];
  const int64_t depth = args->inputs[0].shape[2], width = args->inputs[2].shape[2];
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t i = 0; i < queries; ++i) {
      float sum[64] = {0}, total = 0, most = -INFINITY;
      for (int64_t j = 0; j < keys; ++j) {
        if (mask[b * keys + j] == 0) continue;
        float score = 0;
        for (int64_t d = 0; d < depth; ++d) score += q[(b * queries + i) * depth + d] * k[(b * keys + j) * depth + d];
        score *= 0.25f;
        const float larger = fmaxf(most, score), before = expf(most - larger), weight = expf(score - larger);
        total = total * before + weight;
        for (int64_t d = 0; d < width; ++d) sum[d] = sum[d] * before + weight * v[(b * keys + j) * width + d];
        most = larger;
      }
      for (int64_t d = 0; d < width; ++d) out[(b * queries + i) * width + d] = sum[d] / total;
    }
  }
  return 0;
}
