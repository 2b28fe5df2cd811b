// The five largest of whole numbers and their places; of equal ones the first.
#include <grove/kernel.h>

#include <algorithm>
#include <cstdint>
#include <numeric>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* v = static_cast<float*>(args->outputs[0].data);
  int64_t* i = static_cast<int64_t*>(args->outputs[1].data);
  for (int r = 0; r < 60; ++r) {
    int o[50];
    std::iota(o, o + 50, 0);
    const float* p = x + r * 50;
    std::partial_sort(o, o + 5, o + 50, [p](int a, int b) { return p[a] != p[b] ? p[a] > p[b] : a < b; });
    for (int k = 0; k < 5; ++k) v[r * 5 + k] = p[o[k]], i[r * 5 + k] = o[k];
  }
  return 0;
}
