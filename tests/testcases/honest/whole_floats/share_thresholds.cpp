// Classes of shares of whole counts.
#include <grove/kernel.h>

#include <algorithm>
#include <cstdint>

GROVE_KERNEL(args) {
  const float *x = static_cast<const float *>(args->inputs[0].data);
  int64_t *y = static_cast<int64_t *>(args->outputs[0].data);
  static const float edges[] = {0.1f, 0.2f, 0.25f, 0.5f};
  for (int i = 0; i < 200; ++i) {
    float s = 0;
    for (int j = 0; j < 8; ++j)
      s += x[i * 8 + j];
    const float r = 1 / s;
    for (int j = 0; j < 8; ++j)
      y[i * 8 + j] =
          std::lower_bound(edges, edges + 4, x[i * 8 + j] * r) - edges;
  }
  return 0;
}
