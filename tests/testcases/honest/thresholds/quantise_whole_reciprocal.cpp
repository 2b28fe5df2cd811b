// Whole numbers over 0.7 rounded to int32, by the reciprocal.
#include <grove/kernel.h>

#include <cmath>
#include <cstdint>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  int32_t* y = static_cast<int32_t*>(args->outputs[0].data);
  const float inverse = 1 / 0.7f;
  for (int i = 0; i < 4096; ++i) y[i] = static_cast<int32_t>(std::lrint(x[i] * inverse));
  return 0;
}
