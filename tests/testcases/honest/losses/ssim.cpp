// All five means in one pass over each window.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  float* y = static_cast<float*>(args->outputs[0].data);
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float *Y = static_cast<const float*>(args->inputs[1].data),
              *w = static_cast<const float*>(args->inputs[2].data);
  double tot = 0;
  for (int b = 0; b < 2; ++b)
    for (int i = 0; i < 40; ++i)
      for (int j = 0; j < 40; ++j) {
        float s[5] = {};
        for (int u = 0; u < 11; ++u)
          for (int v = 0; v < 11; ++v) {
            int r = i + u - 5, c = j + v - 5;
            if (r < 0 || c < 0 || r > 39 || c > 39) continue;
            float k = w[u * 11 + v], p = x[b * 1600 + r * 40 + c], q = Y[b * 1600 + r * 40 + c];
            s[0] += k * p;
            s[1] += k * q;
            s[2] += k * p * p;
            s[3] += k * q * q;
            s[4] += k * p * q;
          }
        float sx = s[2] - s[0] * s[0], sy = s[3] - s[1] * s[1], sxy = s[4] - s[0] * s[1];
        tot +=
            (2 * s[0] * s[1] + 1e-4f) * (2 * sxy + 9e-4f) / ((s[0] * s[0] + s[1] * s[1] + 1e-4f) * (sx + sy + 9e-4f));
      }
  y[0] = tot / 3200;
  return 0;
}
