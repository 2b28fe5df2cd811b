// A Python float and a whole number among the inputs.
#include <grove/kernel.h>

#include <cstdint>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const double* s = static_cast<const double*>(args->inputs[1].data);
  const int64_t* n = static_cast<const int64_t*>(args->inputs[2].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int i = 0; i < 500; ++i) {
    const float v = x[i] * static_cast<float>(s[0]), m = static_cast<float>(n[0]);
    y[i] = v < -m ? -m : v > m ? m : v;
  }
  return 0;
}
