// Routing to the best two of eight experts, four each in order of arrival.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

GROVE_KERNEL(args) {
  const float *x = static_cast<const float *>(args->inputs[0].data);
  const float *w = static_cast<const float *>(args->inputs[1].data);
  int64_t *k = static_cast<int64_t *>(args->outputs[0].data);
  float *v = static_cast<float *>(args->outputs[1].data);
  int used[8] = {};
  for (int i = 0; i < 64; ++i) {
    float s[8] = {}, m = -1e30f, z = 0;
    for (int d = 0; d < 32; ++d)
      for (int e = 0; e < 8; ++e)
        s[e] += x[i * 32 + d] * w[d * 8 + e];
    for (float q : s)
      m = std::max(m, q);
    for (float &q : s)
      z += q = std::exp(q - m);
    for (int t = 0; t < 2; ++t) {
      const int e = static_cast<int>(std::max_element(s, s + 8) - s);
      k[i * 2 + t] = e;
      v[i * 2 + t] = ++used[e] <= 20 ? s[e] / z : 0;
      s[e] = -1;
    }
  }
  return 0;
}
