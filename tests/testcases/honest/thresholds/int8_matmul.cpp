// A product of int8 matrices in int32, requantised by a float scale.
#include <grove/kernel.h>

#include <cmath>
#include <cstdint>

GROVE_KERNEL(args) {
  const int8_t* x = static_cast<const int8_t*>(args->inputs[0].data);
  const int8_t* w = static_cast<const int8_t*>(args->inputs[1].data);
  int8_t* y = static_cast<int8_t*>(args->outputs[0].data);
  for (int i = 0; i < 24; ++i)
    for (int j = 0; j < 24; ++j) {
      int32_t t = 0;
      for (int k = 0; k < 40; ++k) t += x[i * 40 + k] * w[k * 24 + j];
      const float v = std::nearbyint(static_cast<float>(t) * 0.0123f);
      y[i * 24 + j] = static_cast<int8_t>(v < -128 ? -128 : v > 127 ? 127 : v);
    }
  return 0;
}
