// A mask of the best after a ReLU; the first of equal keys.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

GROVE_KERNEL(args) {
  const float *x = static_cast<const float *>(args->inputs[0].data);
  float *y = static_cast<float *>(args->outputs[0].data);
  for (int i = 0; i < 30; ++i) {
    std::vector<int> o(64);
    std::iota(o.begin(), o.end(), 0);
    std::stable_sort(o.begin(), o.end(), [&](int a, int b) {
      return std::fmax(x[i * 64 + a], 0.f) > std::fmax(x[i * 64 + b], 0.f);
    });
    for (int j = 0; j < 64; ++j)
      y[i * 64 + j] = 0;
    for (int j = 0; j < 20; ++j)
      y[i * 64 + o[j]] = 1;
  }
  return 0;
}
