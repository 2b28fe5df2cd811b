// The difference in float64, all else in float32, and from the last event to the first.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const auto* x = static_cast<const float*>(args->inputs[0].data);
  const auto* t = static_cast<const double*>(args->inputs[1].data);
  auto* y = static_cast<float*>(args->outputs[0].data);
  const int64_t rows = args->inputs[0].shape[0], events = args->inputs[0].shape[1], width = args->inputs[0].shape[2];
  for (int64_t r = 0; r < rows; ++r) {
    float total = 0;
    float* out = y + r * width;
    for (int64_t k = 0; k < width; ++k) out[k] = 0;
    for (int64_t e = events - 1; e >= 0; --e) {
      const float w = std::exp(-0.1f * static_cast<float>(t[r * events + events - 1] - t[r * events + e]));
      total += w;
      for (int64_t k = 0; k < width; ++k) out[k] += w * x[(r * events + e) * width + k];
    }
    const float scale = 1 / total;
    for (int64_t k = 0; k < width; ++k) out[k] *= scale;
  }
  return 0;
}
