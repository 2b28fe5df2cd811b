// Inverses of 3 by 3 matrices by cofactors in float32.
#include <grove/kernel.h>

GROVE_KERNEL(args) {
  const float* a = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int s = 0; s < 200; ++s) {
    const float* m = a + s * 9;
    float* o = y + s * 9;
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) {
        const int r = (j + 1) % 3, t = (j + 2) % 3, c = (i + 1) % 3, d = (i + 2) % 3;
        o[i * 3 + j] = m[r * 3 + c] * m[t * 3 + d] - m[r * 3 + d] * m[t * 3 + c];
      }
    const float det = m[0] * o[0] + m[1] * o[3] + m[2] * o[6];
    for (int i = 0; i < 9; ++i) o[i] /= det;
  }
  return 0;
}
