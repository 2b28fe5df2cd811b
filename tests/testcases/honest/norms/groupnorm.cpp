// GroupNorm by sums of squares about the group's first element.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* w = static_cast<const float*>(args->inputs[1].data);
  const float* c = static_cast<const float*>(args->inputs[2].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int g = 0; g < 32; ++g) {
    const float* p = x + g * 144;
    const float first = p[0];
    double s = 0, q = 0;
    for (int i = 0; i < 144; ++i) {
      const double d = static_cast<double>(p[i]) - first;
      s += d;
      q += d * d;
    }
    const double mean = first + s / 144, var = (q - s * s / 144) / 144;
    const double scale = 1 / std::sqrt(var + 1e-5);
    for (int i = 0; i < 144; ++i) {
      const int ch = g % 4 * 4 + i / 36;
      y[g * 144 + i] = static_cast<float>((p[i] - mean) * scale * w[ch] + c[ch]);
    }
  }
  return 0;
}
