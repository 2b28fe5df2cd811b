// searchsorted to the right, by std::upper_bound.
#include <grove/kernel.h>

#include <algorithm>
#include <cstdint>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* b = static_cast<const float*>(args->inputs[1].data);
  int64_t* y = static_cast<int64_t*>(args->outputs[0].data);
  for (int r = 0; r < 25; ++r)
    for (int c = 0; c < 30; ++c)
      y[r * 30 + c] = std::upper_bound(b + r * 64, b + r * 64 + 64, x[r * 30 + c]) - (b + r * 64);
  return 0;
}
