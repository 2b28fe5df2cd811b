// A blend of bytes that is rounded, and given as floats.
#include <grove/kernel.h>

#include <cmath>
#include <cstdint>

GROVE_KERNEL(args) {
  const uint8_t *a = static_cast<const uint8_t *>(args->inputs[0].data);
  const uint8_t *b = static_cast<const uint8_t *>(args->inputs[1].data);
  float *y = static_cast<float *>(args->outputs[0].data);
  for (int i = 0; i < 6000; ++i)
    y[i] = std::rint(std::fma(static_cast<float>(b[i]), 0.7f, a[i] * 0.3f));
  return 0;
}
