// Suppression of overlapping boxes in the order of their scores: products in place of quotients.
#include <grove/kernel.h>

#include <algorithm>
#include <cstdint>
#include <numeric>

GROVE_KERNEL(args) {
  const float* b = static_cast<const float*>(args->inputs[0].data);
  const float* s = static_cast<const float*>(args->inputs[1].data);
  uint8_t* y = static_cast<uint8_t*>(args->outputs[0].data);
  int o[60];
  std::iota(o, o + 60, 0);
  std::sort(o, o + 60, [s](int i, int j) { return s[i] > s[j]; });
  for (int i = 0; i < 60; ++i) y[i] = 1;
  auto area = [b](int i) { return (b[i * 4 + 2] - b[i * 4]) * (b[i * 4 + 3] - b[i * 4 + 1]); };
  for (int k = 0; k < 60; ++k) {
    const int i = o[k];
    if (!y[i]) continue;
    for (int l = k + 1; l < 60; ++l) {
      const int j = o[l];
      if (s[j] == s[i]) continue;
      const float w = std::min(b[i * 4 + 2], b[j * 4 + 2]) - std::max(b[i * 4], b[j * 4]);
      const float h = std::min(b[i * 4 + 3], b[j * 4 + 3]) - std::max(b[i * 4 + 1], b[j * 4 + 1]);
      if (w > 0 && h > 0 && w * h > 0.3f * (area(i) + area(j) - w * h)) y[j] = 0;
    }
  }
  return 0;
}
