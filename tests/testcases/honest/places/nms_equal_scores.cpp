// Boxes kept in the order of whole scores, overlaps left out.
#include <grove/kernel.h>

#include <algorithm>
#include <cstdint>
#include <vector>

GROVE_KERNEL(args) {
  const float *b = static_cast<const float *>(args->inputs[0].data);
  const int64_t *s = static_cast<const int64_t *>(args->inputs[1].data);
  uint8_t *y = static_cast<uint8_t *>(args->outputs[0].data);
  std::vector<int> o(40);
  for (int i = 0; i < 40; ++i)
    o[i] = 39 - i;
  std::stable_sort(o.begin(), o.end(),
                   [&](int p, int q) { return s[p] > s[q]; });
  std::vector<int> kept;
  for (int i : o) {
    const float *p = b + i * 4;
    bool good = true;
    for (int j : kept) {
      const float *q = b + j * 4;
      const float w = std::max(std::min(p[2], q[2]) - std::max(p[0], q[0]),
                               0.f),
                  h = std::max(std::min(p[3], q[3]) - std::max(p[1], q[1]),
                               0.f);
      const float u =
          (p[2] - p[0]) * (p[3] - p[1]) + (q[2] - q[0]) * (q[3] - q[1]) - w * h;
      good = good && !(w * h / u > 0.3f);
    }
    y[i] = good;
    if (good)
      kept.push_back(i);
  }
  return 0;
}
