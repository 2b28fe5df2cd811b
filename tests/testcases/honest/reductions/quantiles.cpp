// By sorting each row.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>
#include <vector>

GROVE_KERNEL(args) {
  float* y = static_cast<float*>(args->outputs[0].data);
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float q[3] = {0.1f, 0.5f, 0.93f};
  for (int r = 0; r < 20; ++r) {
    std::vector<float> v(x + r * 101, x + r * 101 + 101);
    std::sort(v.begin(), v.end());
    for (int k = 0; k < 3; ++k) {
      float p = q[k] * 100;
      int lo = p;
      y[k * 20 + r] = v[lo] + (p - lo) * (v[std::min(100, lo + 1)] - v[lo]);
    }
  }
  return 0;
}
