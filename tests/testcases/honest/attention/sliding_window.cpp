// Only the window's keys are looked at, sums in double.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>

GROVE_KERNEL(args) {
  float* y = static_cast<float*>(args->outputs[0].data);
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float *k = static_cast<const float*>(args->inputs[1].data),
              *v = static_cast<const float*>(args->inputs[2].data);
  for (int b = 0; b < 4; ++b)
    for (int i = 0; i < 70; ++i) {
      float s[16], m = -INFINITY;
      int lo = std::max(0, i - 15), c = i - lo + 1;
      double l = 0, o[24] = {};
      for (int j = 0; j < c; ++j) {
        double t = 0;
        for (int e = 0; e < 24; ++e) t += (double)x[(b * 70 + i) * 24 + e] * k[(b * 70 + lo + j) * 24 + e];
        s[j] = t / std::sqrt(24.);
        m = std::fmax(m, s[j]);
      }
      for (int j = 0; j < c; ++j) {
        double p = std::exp(s[j] - m);
        l += p;
        for (int e = 0; e < 24; ++e) o[e] += p * v[(b * 70 + lo + j) * 24 + e];
      }
      for (int e = 0; e < 24; ++e) y[(b * 70 + i) * 24 + e] = o[e] / l;
    }
  return 0;
}
