// The forward recurrence of a CTC loss with probabilities in double in place of logarithms.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* m = static_cast<const float*>(args->inputs[1].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  double a[9] = {};
  for (int k = 0; k < 2; ++k) a[k] = std::exp(static_cast<double>(x[k]));
  for (int t = 1; t < 20; ++t)
    for (int k = 8; k >= 0; --k) {
      const double one = k > 0 ? a[k - 1] : 0, two = k > 1 && m[k] == 0 ? a[k - 2] : 0;
      a[k] = (a[k] + one + two) * std::exp(static_cast<double>(x[t * 9 + k]));
    }
  y[0] = static_cast<float>(-std::log(a[7] + a[8]));
  return 0;
}
