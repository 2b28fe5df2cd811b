// Products of bytes, added up in 32 bits.
#include <grove/kernel.h>

#include <cstdint>

GROVE_KERNEL(args) {
  const int8_t* x = static_cast<const int8_t*>(args->inputs[0].data);
  const int8_t* w = static_cast<const int8_t*>(args->inputs[1].data);
  int32_t* y = static_cast<int32_t*>(args->outputs[0].data);
  int64_t* s = static_cast<int64_t*>(args->outputs[1].data);
  for (int i = 0; i < 30; ++i) {
    int32_t sum = 0;
    for (int k = 0; k < 256; ++k) sum += x[i * 256 + k];
    s[i] = sum;
    for (int j = 0; j < 20; ++j) {
      int32_t t = 0;
      for (int k = 0; k < 256; ++k) t += static_cast<int16_t>(x[i * 256 + k] * w[k * 20 + j]);
      y[i * 20 + j] = t;
    }
  }
  return 0;
}
