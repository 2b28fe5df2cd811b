// Edit distance of pairs of strings of tokens, with one row in memory.
#include <grove/kernel.h>

#include <algorithm>
#include <cstdint>
#include <numeric>

GROVE_KERNEL(args) {
  const int64_t* a = static_cast<const int64_t*>(args->inputs[0].data);
  const int64_t* b = static_cast<const int64_t*>(args->inputs[1].data);
  int64_t* y = static_cast<int64_t*>(args->outputs[0].data);
  for (int r = 0; r < 40; ++r) {
    int d[12];
    std::iota(d, d + 12, 0);
    for (int i = 0; i < 9; ++i) {
      int corner = d[0]++;
      for (int j = 0; j < 11; ++j) {
        const int next = std::min({corner + (a[r * 9 + i] != b[r * 11 + j]), d[j] + 1, d[j + 1] + 1});
        corner = d[j + 1];
        d[j + 1] = next;
      }
    }
    y[r] = d[11];
  }
  return 0;
}
