// Places of the three largest of a float32 product that was rounded to bfloat16: many ties, the first of equal
// ones.
#include <grove/kernel.h>

#include <algorithm>
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
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* w = static_cast<const float*>(args->inputs[1].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int i = 0; i < 30; ++i) {
    float v[50];
    for (int j = 0; j < 50; ++j) {
      float t = 0;
      for (int k = 39; k >= 0; --k) t += x[i * 40 + k] * w[k * 50 + j];
      v[j] = Up(Down(t));
    }
    std::sort(v, v + 50);
    for (int k = 0; k < 3; ++k) y[i * 3 + k] = v[49 - k];
  }
  return 0;
}
