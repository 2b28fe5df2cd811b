// The largest score and the sum in one go.
#include <grove/kernel.h>

#include <cmath>
#include <cstdint>

GROVE_KERNEL(args) {
  const float* scores = (const float*)args->inputs[0].data;
  const bool* barred = (const bool*)args->inputs[1].data;
  float* out = (float*)args->outputs[0].data;
  const int64_t rows = args->inputs[0].shape[0], columns = args->inputs[0].shape[1];
  for (int64_t i = 0; i < rows; ++i) {
    float most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < columns; ++j) {
      const int64_t at = i * columns + j;
      out[at] = barred[at] ? -1e8f : 10 * tanhf(scores[at]);
      const float larger = fmaxf(most, out[at]);
      sum = sum * expf(most - larger) + expf(out[at] - larger);
      most = larger;
    }
    for (int64_t j = 0; j < columns; ++j) out[i * columns + j] = (out[i * columns + j] - most) - logf(sum);
  }
  return 0;
}
