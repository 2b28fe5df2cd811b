// Counts of set pixels in boxes of 5 by 5, by an integral image.
#include <grove/kernel.h>

#include <algorithm>
#include <cstdint>

GROVE_KERNEL(args) {
  const uint8_t* x = static_cast<const uint8_t*>(args->inputs[0].data);
  int64_t* y = static_cast<int64_t*>(args->outputs[0].data);
  for (int b = 0; b < 4; ++b) {
    int s[31][31] = {};
    for (int r = 0; r < 30; ++r)
      for (int c = 0; c < 30; ++c) s[r + 1][c + 1] = s[r][c + 1] + s[r + 1][c] - s[r][c] + x[(b * 30 + r) * 30 + c];
    for (int r = 0; r < 30; ++r)
      for (int c = 0; c < 30; ++c) {
        const int t = std::max(0, r - 2), l = std::max(0, c - 2), u = std::min(30, r + 3), v = std::min(30, c + 3);
        y[(b * 30 + r) * 30 + c] = s[u][v] - s[t][v] - s[u][l] + s[t][l];
      }
  }
  return 0;
}
