// Values gathered at clamped places, with a mask by place.
#include <grove/kernel.h>

#include <algorithm>
#include <cstdint>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const int64_t* i = static_cast<const int64_t*>(args->inputs[1].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int r = 0; r < 20; ++r)
    for (int c = 0; c < 35; ++c) {
      const int64_t k = i[r * 35 + c];
      y[r * 35 + c] = k & 1 ? -x[r * 50 + k] : x[r * 50 + std::min<int64_t>(k + 3, 49)];
    }
  return 0;
}
