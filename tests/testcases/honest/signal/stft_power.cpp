// The transform by its definition, in double.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  float* y = static_cast<float*>(args->outputs[0].data);
  const float* x = static_cast<const float*>(args->inputs[0].data);
  for (int b = 0; b < 2; ++b)
    for (int k = 0; k < 33; ++k)
      for (int t = 0; t < 32; ++t) {
        double re = 0, im = 0;
        for (int i = 0; i < 64; ++i) {
          int p = t * 16 + i - 32;
          if (p < 0) p = -p;
          if (p >= 500) p = 998 - p;
          double w = 0.5 - 0.5 * std::cos(2 * 3.141592653589793 * i / 64), v = w * x[b * 500 + p];
          re += v * std::cos(2 * 3.141592653589793 * (k * i % 64) / 64);
          im -= v * std::sin(2 * 3.141592653589793 * (k * i % 64) / 64);
        }
        y[(b * 33 + k) * 32 + t] = re * re + im * im;
      }
  return 0;
}
