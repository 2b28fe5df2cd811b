// One layer of attention over edges, softmax by destination.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

GROVE_KERNEL(args) {
  const float* h = static_cast<const float*>(args->inputs[0].data);
  const float* a = static_cast<const float*>(args->inputs[1].data);
  const float* b = static_cast<const float*>(args->inputs[2].data);
  const int64_t* s = static_cast<const int64_t*>(args->inputs[3].data);
  const int64_t* t = static_cast<const int64_t*>(args->inputs[4].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  float u[20] = {}, v[20] = {}, z[20] = {};
  for (int n = 0; n < 20; ++n)
    for (int d = 0; d < 6; ++d) {
      u[n] += h[n * 6 + d] * a[d];
      v[n] += h[n * 6 + d] * b[d];
      y[n * 6 + d] = 0;
    }
  float most[20];
  auto score = [&](int e) {
    const float w = u[s[e]] + v[t[e]];
    return w > 0 ? w : 0.2f * w;
  };
  std::fill(most, most + 20, -INFINITY);
  for (int e = 0; e < 90; ++e) most[t[e]] = std::max(most[t[e]], score(e));
  for (int e = 0; e < 90; ++e) {
    const float w = std::exp(score(e) - most[t[e]]);
    z[t[e]] += w;
    for (int d = 0; d < 6; ++d) y[t[e] * 6 + d] += w * h[s[e] * 6 + d];
  }
  for (int k = 0; k < 120; ++k) y[k] /= z[k / 6];
  return 0;
}
