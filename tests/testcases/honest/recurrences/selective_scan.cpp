// The decay as a power of two, softplus by its larger part.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  float* y = static_cast<float*>(args->outputs[0].data);
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float *dl = static_cast<const float*>(args->inputs[1].data),
              *A = static_cast<const float*>(args->inputs[2].data),
              *B = static_cast<const float*>(args->inputs[3].data),
              *C = static_cast<const float*>(args->inputs[4].data),
              *D = static_cast<const float*>(args->inputs[5].data);
  for (int b = 0; b < 2; ++b)
    for (int c = 0; c < 24; ++c) {
      float h[8] = {};
      for (int t = 0; t < 64; ++t) {
        int at = (b * 64 + t) * 24 + c;
        float z = dl[at];
        float s = std::fmax(z, 0) + std::log1p(std::exp(-std::fabs(z)));
        float o = 0;
        for (int n = 0; n < 8; ++n) {
          h[n] = std::exp2(s * (A[c * 8 + n] * 1.4426950408889634f)) * h[n] + s * (x[at] * B[(b * 64 + t) * 8 + n]);
          o += h[n] * C[(b * 64 + t) * 8 + n];
        }
        y[at] = o + x[at] * D[c];
      }
    }
  return 0;
}
