// Of a row of zeros rounding alone is left, and that in another way: a product with the reciprocal of the length.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>
#include <vector>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  std::vector<float> e(333);
  for (int r = 0; r < 50; ++r) {
    float most = x[r * 333];
    double t = 0, m = 0, v = 0;
    for (int c = 0; c < 333; ++c) most = std::max(most, x[r * 333 + c]);
    for (int c = 332; c >= 0; --c) t += e[c] = std::exp(x[r * 333 + c] - most);
    const float k = static_cast<float>(1 / t);
    for (int c = 0; c < 333; ++c) m += e[c] *= k;
    m *= 1.0 / 333;
    for (int c = 0; c < 333; ++c) v += (e[c] - m) * (e[c] - m);
    const double s = 1 / (std::sqrt(v / 332) + 1e-12);
    for (int c = 0; c < 333; ++c) y[r * 333 + c] = static_cast<float>((e[c] - m) * s);
  }
  return 0;
}
