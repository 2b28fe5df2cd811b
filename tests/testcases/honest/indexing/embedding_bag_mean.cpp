// Means of embedded rows, summed word by word.
#include <grove/kernel.h>

#include <cstdint>

GROVE_KERNEL(args) {
  const int64_t* i = static_cast<const int64_t*>(args->inputs[0].data);
  const float* e = static_cast<const float*>(args->inputs[1].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int b = 0; b < 30; ++b)
    for (int d = 0; d < 24; ++d) {
      float s = 0;
      for (int k = 11; k >= 0; --k) s += e[i[b * 12 + k] * 24 + d];
      y[b * 24 + d] = s * (1.f / 12);
    }
  return 0;
}
