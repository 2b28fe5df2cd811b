// Payloads in the order of whole keys; equal keys in order of place.
#include <grove/kernel.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

GROVE_KERNEL(args) {
  const int64_t *x = static_cast<const int64_t *>(args->inputs[0].data);
  const float *w = static_cast<const float *>(args->inputs[1].data);
  float *y = static_cast<float *>(args->outputs[0].data);
  for (int i = 0; i < 30; ++i) {
    std::vector<int> o(60);
    std::iota(o.begin(), o.end(), 0);
    std::stable_sort(o.begin(), o.end(), [&](int a, int b) {
      return x[i * 60 + a] < x[i * 60 + b];
    });
    for (int j = 0; j < 60; ++j)
      y[i * 60 + j] = w[i * 60 + o[j]];
  }
  return 0;
}
