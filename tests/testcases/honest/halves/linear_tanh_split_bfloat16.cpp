// Each sum in two halves that are kept in bfloat16, and then what saturates: on large values nearly a step.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

static float Wide(uint16_t v) {
  const uint32_t bits = uint32_t{v} << 16;
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}

static uint16_t Short(float f) {
  uint32_t bits;
  std::memcpy(&bits, &f, 4);
  if (f != f) return 0x7fc0;
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

GROVE_KERNEL(args) {
  const uint16_t* x = static_cast<const uint16_t*>(args->inputs[0].data);
  const uint16_t* w = static_cast<const uint16_t*>(args->inputs[1].data);
  const uint16_t* b = static_cast<const uint16_t*>(args->inputs[2].data);
  uint16_t* y = static_cast<uint16_t*>(args->outputs[0].data);
  uint16_t* z = static_cast<uint16_t*>(args->outputs[1].data);
  for (int i = 0; i < 96; ++i) {
    for (int j = 0; j < 96; ++j) {
      float part[2] = {Wide(b[j]), 0};
      for (int k = 0; k < 512; ++k) part[k / 256] += Wide(x[i * 512 + k]) * Wide(w[j * 512 + k]);
      const float sum = Wide(Short(Wide(Short(part[0])) + Wide(Short(part[1]))));
      y[i * 96 + j] = Short(std::tanh(sum));
      z[i * 96 + j] = Short(std::min(std::max(sum, 0.f), 6.f));
    }
  }
  return 0;
}
