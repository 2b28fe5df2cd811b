// Areas of polygons by triangles about their first corner.
#include <grove/kernel.h>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int i = 0; i < 100; ++i) {
    const float* p = x + i * 24;
    float s = 0;
    for (int k = 1; k < 11; ++k)
      s += (p[2 * k] - p[0]) * (p[2 * k + 3] - p[1]) - (p[2 * k + 2] - p[0]) * (p[2 * k + 1] - p[1]);
    y[i] = 0.5f * s;
  }
  return 0;
}
