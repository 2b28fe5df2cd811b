// A product by its logarithms and signs.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int r = 0; r < 100; ++r) {
    double log = 0;
    bool negative = false;
    for (int c = 0; c < 12; ++c) {
      const float v = x[r * 12 + c];
      log += std::log(std::fabs(static_cast<double>(v)));
      negative ^= v < 0;
    }
    const double p = std::exp(log);
    y[r] = static_cast<float>(negative ? -p : p);
  }
  return 0;
}
