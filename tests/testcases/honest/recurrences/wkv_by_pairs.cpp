// Weights of all earlier steps, without a running maximum.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  float* y = static_cast<float*>(args->outputs[0].data);
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float *v = static_cast<const float*>(args->inputs[1].data),
              *w = static_cast<const float*>(args->inputs[2].data),
              *u = static_cast<const float*>(args->inputs[3].data);
  for (int c = 0; c < 32; ++c)
    for (int t = 0; t < 40; ++t) {
      double m = u[c] + x[t * 32 + c];
      for (int s = 0; s < t; ++s) m = std::fmax(m, (double)x[s * 32 + c] - (double)(t - 1 - s) * w[c]);
      double n = 0, e = 0;
      for (int s = 0; s <= t; ++s) {
        double p = std::exp((s == t ? (double)u[c] + x[t * 32 + c] : x[s * 32 + c] - (double)(t - 1 - s) * w[c]) - m);
        n += p * v[s * 32 + c];
        e += p;
      }
      y[t * 32 + c] = n / e;
    }
  return 0;
}
