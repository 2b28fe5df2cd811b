// LayerNorm in two passes with an approximate root made exact by Newton's step.
#include <grove/kernel.h>

#include <cstdint>
#include <cstring>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* w = static_cast<const float*>(args->inputs[1].data);
  const float* c = static_cast<const float*>(args->inputs[2].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int r = 0; r < 64; ++r) {
    const float* p = x + r * 384;
    float mean = 0, var = 0;
    for (int k = 0; k < 384; ++k) mean += p[k];
    mean *= 1.f / 384;
    for (int k = 0; k < 384; ++k) var += (p[k] - mean) * (p[k] - mean);
    var = var * (1.f / 384) + 1e-5f;
    float s;
    uint32_t bits;
    std::memcpy(&bits, &var, 4);
    bits = 0x5f3759df - (bits >> 1);
    std::memcpy(&s, &bits, 4);
    for (int k = 0; k < 4; ++k) s *= 1.5f - 0.5f * var * s * s;
    for (int k = 0; k < 384; ++k) y[r * 384 + k] = (p[k] - mean) * s * w[k] + c[k];
  }
  return 0;
}
