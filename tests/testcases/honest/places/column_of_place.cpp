// Row and column of a place in a flat top-k of whole counts.
#include <grove/kernel.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

GROVE_KERNEL(args) {
  const int64_t *c = static_cast<const int64_t *>(args->inputs[0].data);
  int64_t *r = static_cast<int64_t *>(args->outputs[0].data);
  int64_t *d = static_cast<int64_t *>(args->outputs[1].data);
  std::vector<int> o(1024);
  std::iota(o.begin(), o.end(), 0);
  std::stable_sort(o.begin(), o.end(),
                   [&](int a, int b) { return c[a] > c[b]; });
  for (int j = 0; j < 20; ++j) {
    r[j] = o[j] / 32;
    d[j] = o[j] % 32;
  }
  return 0;
}
