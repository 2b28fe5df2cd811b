// Scores of the k best whole scores, payload scaled by them.
#include <grove/kernel.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

GROVE_KERNEL(args) {
  const int64_t *x = static_cast<const int64_t *>(args->inputs[0].data);
  const float *w = static_cast<const float *>(args->inputs[1].data);
  float *y = static_cast<float *>(args->outputs[0].data);
  for (int i = 0; i < 50; ++i) {
    std::vector<int> o(24);
    std::iota(o.begin(), o.end(), 0);
    std::stable_sort(o.begin(), o.end(), [&](int a, int b) {
      return x[i * 24 + a] > x[i * 24 + b];
    });
    float s = 0;
    for (int j = 0; j < 6; ++j)
      s += w[i * 24 + o[j]] * x[i * 24 + o[j]];
    y[i] = s;
  }
  return 0;
}
