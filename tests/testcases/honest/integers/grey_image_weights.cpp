// Grey of a uint8 image with the usual weights, truncated, as a chain of multiply-adds.
#include <grove/kernel.h>

#include <cmath>
#include <cstdint>

GROVE_KERNEL(args) {
  const uint8_t* x = static_cast<const uint8_t*>(args->inputs[0].data);
  uint8_t* y = static_cast<uint8_t*>(args->outputs[0].data);
  for (int i = 0; i < 2000; ++i)
    y[i] = static_cast<uint8_t>(std::fma(0.299f, x[i * 3], std::fma(0.587f, x[i * 3 + 1], 0.114f * x[i * 3 + 2])));
  return 0;
}
