// A linear recurrence h = a h + x by doubling (a parallel scan).
#include <grove/kernel.h>

GROVE_KERNEL(args) {
  const float* a = static_cast<const float*>(args->inputs[0].data);
  const float* x = static_cast<const float*>(args->inputs[1].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int r = 0; r < 20; ++r) {
    float p[64], q[64];
    for (int t = 0; t < 64; ++t) p[t] = a[r * 64 + t], q[t] = x[r * 64 + t];
    for (int step = 1; step < 64; step *= 2)
      for (int t = 63; t >= step; --t) {
        q[t] += p[t] * q[t - step];
        p[t] *= p[t - step];
      }
    for (int t = 0; t < 64; ++t) y[r * 64 + t] = q[t];
  }
  return 0;
}
