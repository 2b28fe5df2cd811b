// Average and maximum pooling with ceil_mode, whose last windows are cut off.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* m = static_cast<float*>(args->outputs[0].data);
  float* a = static_cast<float*>(args->outputs[1].data);
  for (int s = 0; s < 8; ++s)
    for (int p = 0; p < 36; ++p) {
      const int r = p / 6 * 2, c = p % 6 * 2;
      float most = -INFINITY, sum = 0;
      int n = 0;
      for (int i = r; i < std::min(12, r + 3); ++i)
        for (int j = c; j < std::min(12, c + 3); ++j, ++n)
          most = std::max(most, x[(s * 12 + i) * 12 + j]), sum += x[(s * 12 + i) * 12 + j];
      m[s * 36 + p] = most;
      a[s * 36 + p] = sum / static_cast<float>(n);
    }
  return 0;
}
