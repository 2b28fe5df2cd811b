// All pairs of a later and an earlier step instead of a state.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>
#include <vector>

GROVE_KERNEL(args) {
  float* y = static_cast<float*>(args->outputs[0].data);
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float *k = static_cast<const float*>(args->inputs[1].data),
              *v = static_cast<const float*>(args->inputs[2].data),
              *ig = static_cast<const float*>(args->inputs[3].data),
              *fg = static_cast<const float*>(args->inputs[4].data);
  for (int b = 0; b < 2; ++b)
    for (int t = 0; t < 30; ++t) {
      double m = 0;
      std::vector<double> w(t + 1);
      {
        double c = 0;
        for (int s = t; s >= 0; --s) {
          w[s] = c + ig[b * 30 + s];
          c += -std::log1p(std::exp(-(double)fg[b * 30 + s]));
        }
        m = c;
        for (double e : w) m = std::max(m, e);
      }
      double o[8] = {}, n = 0;
      for (int s = 0; s <= t; ++s) {
        double z = 0;
        for (int e = 0; e < 8; ++e) z += (double)x[(b * 30 + t) * 8 + e] * k[(b * 30 + s) * 8 + e];
        z *= std::exp(w[s] - m);
        n += z;
        for (int e = 0; e < 8; ++e) o[e] += z * v[(b * 30 + s) * 8 + e];
      }
      n = std::max(std::fabs(n), std::exp(-m));
      for (int e = 0; e < 8; ++e) y[(b * 30 + t) * 8 + e] = o[e] / n;
    }
  return 0;
}
