// Corners by their fractions, nothing gathered.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  float* y = static_cast<float*>(args->outputs[0].data);
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float *of = static_cast<const float*>(args->inputs[1].data),
              *w = static_cast<const float*>(args->inputs[2].data);
  for (int b = 0; b < 2; ++b)
    for (int i = 0; i < 10; ++i)
      for (int j = 0; j < 12; ++j) {
        float o[5] = {};
        for (int k = 0; k < 9; ++k) {
          float Y = i + k / 3 - 1 + of[((b * 18 + 2 * k) * 10 + i) * 12 + j],
                X = j + k % 3 - 1 + of[((b * 18 + 2 * k + 1) * 10 + i) * 12 + j];
          int y0 = std::floor(Y), x0 = std::floor(X);
          float fy = Y - y0, fx = X - x0;
          for (int c = 0; c < 4; ++c) {
            auto at = [&](int p, int q) {
              return p < 0 || q < 0 || p > 9 || q > 11 ? 0.f : x[((b * 4 + c) * 10 + p) * 12 + q];
            };
            float v = (1 - fy) * ((1 - fx) * at(y0, x0) + fx * at(y0, x0 + 1)) +
                      fy * ((1 - fx) * at(y0 + 1, x0) + fx * at(y0 + 1, x0 + 1));
            for (int q = 0; q < 5; ++q) o[q] += w[(k * 5 + q) * 4 + c] * v;
          }
        }
        for (int q = 0; q < 5; ++q) y[((b * 5 + q) * 10 + i) * 12 + j] = o[q];
      }
  return 0;
}
