// A convolution by im2col and a product.
#include <grove/kernel.h>

#include <vector>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* w = static_cast<const float*>(args->inputs[1].data);
  const float* b = static_cast<const float*>(args->inputs[2].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  std::vector<float> col(54 * 49);
  for (int s = 0; s < 2; ++s) {
    for (int q = 0; q < 54; ++q)
      for (int p = 0; p < 49; ++p) {
        const int r = p / 7 * 2 + q % 9 / 3 - 1, c = p % 7 * 2 + q % 3 - 1;
        col[q * 49 + p] = r < 0 || c < 0 || r > 13 || c > 13 ? 0 : x[((s * 6 + q / 9) * 14 + r) * 14 + c];
      }
    for (int o = 0; o < 8; ++o)
      for (int p = 0; p < 49; ++p) {
        float t = b[o];
        for (int q = 0; q < 54; ++q) t += w[o * 54 + q] * col[q * 49 + p];
        y[(s * 8 + o) * 49 + p] = t;
      }
  }
  return 0;
}
