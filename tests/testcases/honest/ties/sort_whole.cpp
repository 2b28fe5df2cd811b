// Whole numbers sorted with their places by a stable sort.
#include <grove/kernel.h>

#include <algorithm>
#include <cstdint>
#include <numeric>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* v = static_cast<float*>(args->outputs[0].data);
  int64_t* i = static_cast<int64_t*>(args->outputs[1].data);
  for (int r = 0; r < 40; ++r) {
    int o[70];
    std::iota(o, o + 70, 0);
    const float* p = x + r * 70;
    std::stable_sort(o, o + 70, [p](int a, int b) { return p[a] < p[b]; });
    for (int k = 0; k < 70; ++k) v[r * 70 + k] = p[o[k]], i[r * 70 + k] = o[k];
  }
  return 0;
}
