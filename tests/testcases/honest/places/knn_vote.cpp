// The vote of five nearest neighbours among lattice points.
#include <grove/kernel.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

GROVE_KERNEL(args) {
  const float *a = static_cast<const float *>(args->inputs[0].data);
  const float *b = static_cast<const float *>(args->inputs[1].data);
  const int64_t *t = static_cast<const int64_t *>(args->inputs[2].data);
  int64_t *y = static_cast<int64_t *>(args->outputs[0].data);
  for (int i = 0; i < 60; ++i) {
    std::vector<std::pair<float, int>> d;
    for (int j = 0; j < 50; ++j) {
      const float p = a[2 * i] - b[2 * j], q = a[2 * i + 1] - b[2 * j + 1];
      d.push_back({p * p + q * q, j});
    }
    std::sort(d.begin(), d.end());
    for (int c = 0; c < 4; ++c)
      y[i * 4 + c] = 0;
    for (int j = 0; j < 5; ++j)
      ++y[i * 4 + t[d[j].second]];
  }
  return 0;
}
