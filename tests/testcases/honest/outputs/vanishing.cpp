// By erfc. On large values a part of the result is too small for its type.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  float* y = static_cast<float*>(args->outputs[0].data);
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float *k = static_cast<const float*>(args->inputs[1].data),
              *t = static_cast<const float*>(args->inputs[2].data),
              *v = static_cast<const float*>(args->inputs[3].data);
  for (int i = 0; i < 2000; ++i) {
    float q = v[i] * std::sqrt(t[i]), d1 = (std::log(x[i] / k[i]) + 0.02f * t[i]) / q + q / 2, d2 = d1 - q;
    float n1 = 0.5f * std::erfc(-d1 * 0.70710678f), n2 = 0.5f * std::erfc(-d2 * 0.70710678f);
    y[i] = x[i] * n1 - k[i] * std::exp(-0.02f * t[i]) * n2;
    static_cast<float*>(args->outputs[1].data)[i] = n1;
    static_cast<float*>(args->outputs[2].data)[i] = x[i] * std::exp(-0.5f * d1 * d1) * 0.3989422804f * std::sqrt(t[i]);
  }
  return 0;
}
