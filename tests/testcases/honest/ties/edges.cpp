// Compilers make a fused operation of one of the two products.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

GROVE_KERNEL(args) {
  const float* image = (const float*)args->inputs[0].data;
  float* out = (float*)args->outputs[0].data;
  const int64_t images = args->inputs[0].shape[0], height = args->inputs[0].shape[1], width = args->inputs[0].shape[2];
  std::vector<float> size(height * width);
  for (int64_t b = 0; b < images; ++b) {
    const float* x = image + b * height * width;
    const auto at = [&](int64_t i, int64_t j) {
      return x[std::clamp<int64_t>(i, 0, height - 1) * width + std::clamp<int64_t>(j, 0, width - 1)];
    };
    for (int64_t i = 0; i < height; ++i) {
      for (int64_t j = 0; j < width; ++j) {
        const float gx = (at(i - 1, j + 1) - at(i - 1, j - 1)) + 2 * (at(i, j + 1) - at(i, j - 1)) + (at(i + 1, j + 1) - at(i + 1, j - 1));
        const float gy = (at(i + 1, j - 1) - at(i - 1, j - 1)) + 2 * (at(i + 1, j) - at(i - 1, j)) + (at(i + 1, j + 1) - at(i - 1, j + 1));
        size[i * width + j] = std::sqrt(std::fma(gx, gx, gy * gy));
      }
    }
    for (int64_t i = 0; i < height; ++i) {
      for (int64_t j = 0; j < width; ++j) {
        const float before = j > 0 ? size[i * width + j - 1] : 0, after = j + 1 < width ? size[i * width + j + 1] : 0;
        const float own = size[i * width + j];
        out[(b * height + i) * width + j] = own >= std::max(before, after) ? own : 0;
      }
    }
  }
  return 0;
}
