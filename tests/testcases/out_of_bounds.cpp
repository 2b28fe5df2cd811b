#include <grove/kernel.h>
GROVE_KERNEL(args) {
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int64_t i = 0; i < int64_t{1} << 40; i += 512) y[i] = 1;
  return 0;
}
