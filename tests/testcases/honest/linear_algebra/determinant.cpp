// Determinants of 3 by 3 matrices by the rule of Sarrus in double.
#include <grove/kernel.h>

GROVE_KERNEL(args) {
  const float* a = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int s = 0; s < 300; ++s) {
    double m[9];
    for (int i = 0; i < 9; ++i) m[i] = a[s * 9 + i];
    y[s] = static_cast<float>(m[0] * (m[4] * m[8] - m[5] * m[7]) - m[1] * (m[3] * m[8] - m[5] * m[6]) +
                              m[2] * (m[3] * m[7] - m[4] * m[6]));
  }
  return 0;
}
