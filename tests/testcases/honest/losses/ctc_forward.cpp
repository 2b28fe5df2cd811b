// The forward recurrence of a CTC loss with probabilities in double, scaled at each step, in place of
// logarithms.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* m = static_cast<const float*>(args->inputs[1].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  double a[9] = {}, log = 0;
  a[0] = a[1] = 1;
  for (int t = 0; t < 20; ++t) {
    double top = -INFINITY, most = 0;
    for (int k = 0; k < 9; ++k) top = std::max<double>(top, x[t * 9 + k]);
    for (int k = 8; k >= 0; --k) {
      const double one = k > 0 ? a[k - 1] : 0, two = k > 1 && m[k] == 0 ? a[k - 2] : 0;
      a[k] = (t > 0 ? a[k] + one + two : a[k]) * std::exp(x[t * 9 + k] - top);
      most = std::max(most, a[k]);
    }
    for (double& v : a) v /= most;
    log += top + std::log(most);
  }
  y[0] = static_cast<float>(-log - std::log(a[7] + a[8]));
  return 0;
}
