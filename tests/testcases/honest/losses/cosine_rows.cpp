// Cosine similarity of rows with one root for both.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* z = static_cast<const float*>(args->inputs[1].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int r = 0; r < 90; ++r) {
    float a = 0, b = 0, c = 0;
    for (int k = 0; k < 70; ++k) {
      a += x[r * 70 + k] * z[r * 70 + k];
      b += x[r * 70 + k] * x[r * 70 + k];
      c += z[r * 70 + k] * z[r * 70 + k];
    }
    y[r] = a / std::sqrt(b * c);
  }
  return 0;
}
