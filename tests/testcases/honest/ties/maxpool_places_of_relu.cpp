// Max pooling after a ReLU, with places; of equal ones the first.
#include <grove/kernel.h>

#include <algorithm>
#include <cstdint>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* v = static_cast<float*>(args->outputs[0].data);
  int64_t* i = static_cast<int64_t*>(args->outputs[1].data);
  for (int b = 0; b < 12; ++b)
    for (int r = 0; r < 8; ++r)
      for (int c = 0; c < 8; ++c) {
        float best = -1;
        int at = 0;
        for (int k = 0; k < 4; ++k) {
          const int place = (2 * r + k / 2) * 16 + 2 * c + k % 2;
          const float w = std::max(x[b * 256 + place], 0.f);
          if (w > best) best = w, at = place;
        }
        v[b * 64 + r * 8 + c] = best;
        i[b * 64 + r * 8 + c] = at;
      }
  return 0;
}
