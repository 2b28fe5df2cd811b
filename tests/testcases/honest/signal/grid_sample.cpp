// Bilinear sampling at given places, zero outside.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* g = static_cast<const float*>(args->inputs[1].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  for (int s = 0; s < 2; ++s)
    for (int p = 0; p < 64; ++p) {
      const float u = std::fma(g[(s * 64 + p) * 2] + 1, 4.5f, -0.5f),
                  v = std::fma(g[(s * 64 + p) * 2 + 1] + 1, 4.5f, -0.5f);
      const float fu = std::floor(u), fv = std::floor(v);
      for (int ch = 0; ch < 3; ++ch) {
        float t = 0;
        for (int k = 0; k < 4; ++k) {
          const float cu = fu + static_cast<float>(k % 2), cv = fv + static_cast<float>(k / 2);
          if (!(cu >= 0 && cv >= 0 && cu < 9 && cv < 9)) continue;
          t += (1 - std::fabs(u - cu)) * (1 - std::fabs(v - cv)) *
               x[((s * 3 + ch) * 9 + static_cast<int>(cv)) * 9 + static_cast<int>(cu)];
        }
        y[(s * 3 + ch) * 64 + p] = t;
      }
    }
  return 0;
}
