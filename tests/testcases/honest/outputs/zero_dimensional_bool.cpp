// Whether all are close: one flag.
#include <grove/kernel.h>

#include <cmath>
#include <cstdint>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* z = static_cast<const float*>(args->inputs[1].data);
  uint8_t* y = static_cast<uint8_t*>(args->outputs[0].data);
  y[0] = 1;
  for (int i = 0; i < 500; ++i) y[0] &= std::fabs(x[i] - z[i]) < 10;
  return 0;
}
