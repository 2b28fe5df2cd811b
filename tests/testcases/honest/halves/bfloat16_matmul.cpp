// A product of bfloat16 matrices with float32 sums, rounded to nearest even.
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
  const uint16_t* w = static_cast<const uint16_t*>(args->inputs[1].data);
  uint16_t* y = static_cast<uint16_t*>(args->outputs[0].data);
  for (int i = 0; i < 24; ++i)
    for (int j = 0; j < 20; ++j) {
      float t = 0;
      for (int k = 0; k < 96; ++k) t = std::fma(Up(x[i * 96 + k]), Up(w[k * 20 + j]), t);
      y[i * 20 + j] = Down(t);
    }
  return 0;
}
