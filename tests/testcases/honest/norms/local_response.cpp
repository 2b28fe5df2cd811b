// Local response normalisation with a running window of squares in double.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int b = 0; b < 2; ++b)
    for (int i = 0; i < 81; ++i) {
      const float* p = x + b * 12 * 81 + i;
      for (int ch = 0; ch < 12; ++ch) {
        double q = 0;
        for (int k = std::max(0, ch - 2); k <= std::min(11, ch + 2); ++k)
          q += static_cast<double>(p[k * 81]) * p[k * 81];
        const double d = std::sqrt(1.5 + 1e-3 * q / 5);
        y[b * 12 * 81 + ch * 81 + i] = static_cast<float>(p[ch * 81] / (d * std::sqrt(d)));
      }
    }
  return 0;
}
