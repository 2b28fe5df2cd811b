// Eight values sorted by a network of nineteen comparators.
#include <grove/kernel.h>

#include <algorithm>
#include <cstdint>

GROVE_KERNEL(args) {
  const int16_t* x = static_cast<const int16_t*>(args->inputs[0].data);
  int16_t* y = static_cast<int16_t*>(args->outputs[0].data);
  const int net[19][2] = {{0, 2}, {1, 3}, {4, 6}, {5, 7}, {0, 4}, {1, 5}, {2, 6}, {3, 7}, {0, 1}, {2, 3},
                          {4, 5}, {6, 7}, {2, 4}, {3, 5}, {1, 4}, {3, 6}, {1, 2}, {3, 4}, {5, 6}};
  for (int r = 0; r < 300; ++r) {
    int16_t v[8];
    for (int k = 0; k < 8; ++k) v[k] = x[r * 8 + k];
    for (const auto& p : net)
      if (v[p[0]] > v[p[1]]) std::swap(v[p[0]], v[p[1]]);
    for (int k = 0; k < 8; ++k) y[r * 8 + k] = v[k];
  }
  return 0;
}
