// Sums in 32 bits, which hold them exactly, and then one division or one product.
#include <grove/kernel.h>

#include <cstdint>

GROVE_KERNEL(args) {
  const int32_t* x = static_cast<const int32_t*>(args->inputs[0].data);
  const float* w = static_cast<const float*>(args->inputs[1].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  float* z = static_cast<float*>(args->outputs[1].data);
  for (int r = 0; r < 48; ++r) {
    int32_t sum = 0;
    for (int c = 0; c < 2048; ++c) sum += x[r * 2048 + c];
    y[r] = static_cast<float>(sum) / 2048;
  }
  for (int c = 0; c < 2048; ++c) {
    int32_t sum = -48 * 500;
    for (int r = 0; r < 48; ++r) sum += x[r * 2048 + c];
    z[c] = static_cast<float>(sum) * w[c];
  }
  return 0;
}
