// Two uint8 images blended by a weight and rounded.
#include <grove/kernel.h>

#include <cmath>
#include <cstdint>

GROVE_KERNEL(args) {
  const uint8_t* x = static_cast<const uint8_t*>(args->inputs[0].data);
  const uint8_t* z = static_cast<const uint8_t*>(args->inputs[1].data);
  uint8_t* y = static_cast<uint8_t*>(args->outputs[0].data);
  for (int i = 0; i < 4800; ++i)
    y[i] = static_cast<uint8_t>(std::nearbyint(std::fma(0.3f, static_cast<float>(x[i]) - z[i], z[i])));
  return 0;
}
