// Bilinear resizing of bytes, in double.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

GROVE_KERNEL(args) {
  const uint8_t *x = static_cast<const uint8_t *>(args->inputs[0].data);
  uint8_t *y = static_cast<uint8_t *>(args->outputs[0].data);
  for (int c = 0; c < 3; ++c)
    for (int i = 0; i < 72; ++i)
      for (int j = 0; j < 96; ++j) {
        const double p = std::max((i + 0.5) * 48 / 72 - 0.5, 0.0),
                     q = std::max((j + 0.5) * 64 / 96 - 0.5, 0.0);
        const int a = static_cast<int>(p), b = static_cast<int>(q),
                  a1 = std::min(a + 1, 47), b1 = std::min(b + 1, 63);
        const double s = p - a, t = q - b;
        auto at = [&](int r, int w) {
          return static_cast<double>(x[(c * 48 + r) * 64 + w]);
        };
        const double v = (1 - s) * ((1 - t) * at(a, b) + t * at(a, b1)) +
                         s * ((1 - t) * at(a1, b) + t * at(a1, b1));
        y[(c * 72 + i) * 96 + j] = static_cast<uint8_t>(std::rint(v));
      }
  return 0;
}
