// Bytes normalised by mean and spread, as one multiply-add.
#include <grove/kernel.h>

#include <cstdint>

GROVE_KERNEL(args) {
  const uint8_t* x = static_cast<const uint8_t*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int i = 0; i < 4800; ++i) y[i] = static_cast<float>(x[i] * (1 / (255 * 0.225)) - 2.0);
  return 0;
}
