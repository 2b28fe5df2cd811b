// A sigmoid from a table with cubic interpolation in double.
#include <grove/kernel.h>

#include <cmath>
#include <vector>

namespace {
double Exact(double v) { return 1 / (1 + std::exp(-v)); }
}  // namespace

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  static const std::vector<double> table = [] {
    std::vector<double> t;
    for (int k = -1; k < 4104; ++k) t.push_back(Exact(-4 + k / 512.0));
    return t;
  }();
  for (int i = 0; i < 3000; ++i) {
    if (!(x[i] > -4 && x[i] < 4)) {
      y[i] = static_cast<float>(Exact(x[i]));
      continue;
    }
    const double u = (x[i] + 4.0) * 512;
    const int k = static_cast<int>(u);
    const double f = u - k, *p = &table[k];
    y[i] = static_cast<float>(
        p[1] +
        0.5 * f * (p[2] - p[0] + f * (2 * p[0] - 5 * p[1] + 4 * p[2] - p[3] + f * (3 * (p[1] - p[2]) + p[3] - p[0]))));
  }
  return 0;
}
