// The discount taken once, by fused multiply-adds.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  float* y = static_cast<float*>(args->outputs[0].data);
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float *v = static_cast<const float*>(args->inputs[1].data),
              *dn = static_cast<const float*>(args->inputs[2].data);
  double s = 0, q = 0;
  for (int n = 0; n < 16; ++n) {
    float l = 0;
    for (int t = 49; t >= 0; --t) {
      float k = 1 - dn[t * 16 + n];
      l = std::fma(0.99f * k, std::fma(0.95f, l, v[(t + 1) * 16 + n]), x[t * 16 + n] - v[t * 16 + n]);
      y[t * 16 + n] = l;
      static_cast<float*>(args->outputs[1].data)[t * 16 + n] = l + v[t * 16 + n];
      s += l;
    }
  }
  s /= 800;
  for (int i = 0; i < 800; ++i) q += (y[i] - s) * (y[i] - s);
  q = 1 / (std::sqrt(q / 799) + 1e-8);
  for (int i = 0; i < 800; ++i) static_cast<float*>(args->outputs[2].data)[i] = (y[i] - s) * q;
  return 0;
}
