// int64 keys sorted down with their places by a sort that is not stable, as the reference need not be either.
#include <grove/kernel.h>

#include <algorithm>
#include <cstdint>
#include <numeric>

GROVE_KERNEL(args) {
  const int64_t* x = static_cast<const int64_t*>(args->inputs[0].data);
  int64_t* v = static_cast<int64_t*>(args->outputs[0].data);
  int64_t* i = static_cast<int64_t*>(args->outputs[1].data);
  for (int r = 0; r < 40; ++r) {
    int o[70];
    std::iota(o, o + 70, 0);
    const int64_t* p = x + r * 70;
    std::sort(o, o + 70, [p](int a, int b) { return p[a] > p[b]; });
    for (int k = 0; k < 70; ++k) v[r * 70 + k] = p[o[k]], i[r * 70 + k] = o[k];
  }
  return 0;
}
