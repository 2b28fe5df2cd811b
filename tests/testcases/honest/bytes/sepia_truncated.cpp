// Three weighted sums of bytes that are truncated, summed from behind.
#include <grove/kernel.h>

#include <cmath>
#include <cstdint>

GROVE_KERNEL(args) {
  const uint8_t *x = static_cast<const uint8_t *>(args->inputs[0].data);
  uint8_t *y = static_cast<uint8_t *>(args->outputs[0].data);
  static const float m[3][3] = {{0.393f, 0.769f, 0.189f},
                                {0.349f, 0.686f, 0.168f},
                                {0.272f, 0.534f, 0.131f}};
  const int n = 48 * 64;
  for (int c = 0; c < 3; ++c)
    for (int i = 0; i < n; ++i) {
      const float v =
          (m[c][2] * x[2 * n + i] + m[c][1] * x[n + i]) + m[c][0] * x[i];
      y[c * n + i] = static_cast<uint8_t>(std::fmin(v, 255.f));
    }
  return 0;
}
