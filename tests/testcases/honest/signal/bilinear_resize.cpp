// Bilinear enlargement with aligned corners, places in double.
#include <grove/kernel.h>

#include <algorithm>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int s = 0; s < 6; ++s)
    for (int r = 0; r < 23; ++r)
      for (int c = 0; c < 31; ++c) {
        const double u = r * 9 / 22.0, v = c * 11 / 30.0;
        const int i = std::min(static_cast<int>(u), 8), j = std::min(static_cast<int>(v), 10);
        const float* p = x + (s * 10 + i) * 12 + j;
        const double a = u - i, b = v - j;
        y[(s * 23 + r) * 31 + c] =
            static_cast<float>((1 - a) * ((1 - b) * p[0] + b * p[1]) + a * ((1 - b) * p[12] + b * p[13]));
      }
  return 0;
}
