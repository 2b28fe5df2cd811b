// Groups of the best after a ReLU: of equal keys the later ones are taken.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

GROVE_KERNEL(args) {
  const float *x = static_cast<const float *>(args->inputs[0].data);
  int64_t *y = static_cast<int64_t *>(args->outputs[0].data);
  for (int i = 0; i < 40; ++i) {
    std::vector<int> o(200);
    for (int j = 0; j < 200; ++j)
      o[j] = 199 - j;
    std::stable_sort(o.begin(), o.end(), [&](int a, int b) {
      return std::fmax(x[i * 200 + a], 0.f) > std::fmax(x[i * 200 + b], 0.f);
    });
    for (int j = 0; j < 12; ++j)
      y[i * 12 + j] = o[j] / 50;
  }
  return 0;
}
