// Edges of an image: flags where the gradient is large, squares compared in place of roots.
#include <grove/kernel.h>

#include <cstdint>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  uint8_t* y = static_cast<uint8_t*>(args->outputs[0].data);
  for (int s = 0; s < 2; ++s)
    for (int i = 0; i < 324; ++i) {
      const float* p = x + s * 400 + i / 18 * 20 + i % 18;
      const float u = (p[2] - p[0]) + 2 * (p[22] - p[20]) + (p[42] - p[40]),
                  v = (p[40] - p[0]) + 2 * (p[41] - p[1]) + (p[42] - p[2]);
      y[s * 324 + i] = u * u + v * v > 2.25f;
    }
  return 0;
}
