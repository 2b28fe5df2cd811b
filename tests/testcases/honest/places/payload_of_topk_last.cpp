// The same with the last of equal keys.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>
#include <vector>

GROVE_KERNEL(args) {
  const float *x = static_cast<const float *>(args->inputs[0].data);
  const float *w = static_cast<const float *>(args->inputs[1].data);
  float *y = static_cast<float *>(args->outputs[0].data);
  for (int i = 0; i < 30; ++i) {
    std::vector<int> o(64);
    for (int j = 0; j < 64; ++j)
      o[j] = 63 - j;
    std::stable_sort(o.begin(), o.end(), [&](int a, int b) {
      return std::fmax(x[i * 64 + a], 0.f) > std::fmax(x[i * 64 + b], 0.f);
    });
    for (int j = 0; j < 16; ++j)
      y[i * 16 + j] = w[i * 64 + o[j]];
  }
  return 0;
}
