// The best path's score and its last state, by additions in another order.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* w = static_cast<const float*>(args->inputs[1].data);
  float* v = static_cast<float*>(args->outputs[0].data);
  int64_t* i = static_cast<int64_t*>(args->outputs[1].data);
  for (int b = 0; b < 20; ++b) {
    float s[7], n[7];
    for (int k = 0; k < 7; ++k) s[k] = x[b * 7 + k];
    for (int t = 1; t < 15; ++t) {
      for (int k = 0; k < 7; ++k) {
        n[k] = -INFINITY;
        for (int j = 0; j < 7; ++j) n[k] = std::max(n[k], s[j] + (w[j * 7 + k] + x[(t * 20 + b) * 7 + k]));
      }
      for (int k = 0; k < 7; ++k) s[k] = n[k];
    }
    int at = 0;
    for (int k = 1; k < 7; ++k)
      if (s[k] > s[at]) at = k;
    v[b] = s[at];
    i[b] = at;
  }
  return 0;
}
