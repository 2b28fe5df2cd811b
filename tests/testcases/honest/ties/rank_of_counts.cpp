// Classes in the order of how often they come, from counted labels; equal counts by number.
#include <grove/kernel.h>

#include <algorithm>
#include <cstdint>
#include <numeric>

GROVE_KERNEL(args) {
  const int64_t* x = static_cast<const int64_t*>(args->inputs[0].data);
  int64_t* y = static_cast<int64_t*>(args->outputs[0].data);
  for (int r = 0; r < 30; ++r) {
    int n[10] = {}, o[10];
    for (int c = 0; c < 50; ++c) ++n[x[r * 50 + c]];
    std::iota(o, o + 10, 0);
    std::sort(o, o + 10, [&n](int a, int b) { return n[a] != n[b] ? n[a] > n[b] : a < b; });
    for (int k = 0; k < 10; ++k) y[r * 10 + k] = o[k];
  }
  return 0;
}
