// Multiplies by a reciprocal instead of dividing: the largest over itself is then not always 1, and others fall to the
// other side of a whole number.
#include <grove/kernel.h>

#include <algorithm>

GROVE_KERNEL(args) {
  const auto* x = static_cast<const float*>(args->inputs[0].data);
  auto* code = static_cast<int32_t*>(args->outputs[0].data);
  const int64_t points = args->inputs[0].shape[0];
  float low[3], high[3];
  for (int k = 0; k < 3; ++k) {
    low[k] = high[k] = x[k];
    for (int64_t i = 1; i < points; ++i) {
      low[k] = std::min(low[k], x[3 * i + k]);
      high[k] = std::max(high[k], x[3 * i + k]);
    }
  }
  for (int64_t i = 0; i < points; ++i) {
    code[i] = 0;
    for (int k = 0; k < 3; ++k) {
      const float scale = 1 / (high[k] - low[k]);
      const int cell = static_cast<int>((x[3 * i + k] - low[k]) * scale * 1023);
      for (int bit = 0; bit < 10; ++bit) code[i] |= (cell >> bit & 1) << (3 * bit + 2 - k);
    }
  }
  return 0;
}
