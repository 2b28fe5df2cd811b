// What is missing of the targets is not counted.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  const float* t = static_cast<const float*>(args->inputs[1].data);
  for (int r = 0; r < 45; ++r) {
    float sum = 0;
    int known = 0;
    for (int c = 0; c < 300; ++c) {
      const float w = t[r * 300 + c];
      if (!std::isfinite(w)) continue;
      const float d = x[r * 300 + c] - w;
      sum += d * d;
      ++known;
    }
    y[r] = sum / static_cast<float>(std::max(known, 1));
  }
  return 0;
}
