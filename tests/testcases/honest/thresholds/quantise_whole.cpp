// Quantisation of whole numbers with a step of 0.1: division against product.
#include <grove/kernel.h>

#include <cmath>
#include <cstdint>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  uint8_t* y = static_cast<uint8_t*>(args->outputs[0].data);
  for (int i = 0; i < 4096; ++i) {
    const float v = std::nearbyint(x[i] * 2 / 5) + 10;
    y[i] = static_cast<uint8_t>(v < 0 ? 0 : v > 255 ? 255 : v);
  }
  return 0;
}
