// The state updated in place, the key's norm as one factor.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  float* y = static_cast<float*>(args->outputs[0].data);
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float *k = static_cast<const float*>(args->inputs[1].data),
              *v = static_cast<const float*>(args->inputs[2].data),
              *B = static_cast<const float*>(args->inputs[3].data);
  for (int b = 0; b < 3; ++b) {
    float S[12][12] = {};
    for (int t = 0; t < 60; ++t) {
      int at = (b * 60 + t) * 12;
      float n = 0, kk[12];
      for (int i = 0; i < 12; ++i) n += k[at + i] * k[at + i];
      n = 1 / std::fmax(std::sqrt(n), 1e-12f);
      for (int i = 0; i < 12; ++i) kk[i] = k[at + i] * n;
      for (int j = 0; j < 12; ++j) {
        float u = v[at + j];
        for (int i = 0; i < 12; ++i) u -= S[i][j] * kk[i];
        u *= B[b * 60 + t];
        float o = 0;
        for (int i = 0; i < 12; ++i) {
          S[i][j] = std::fma(kk[i], u, S[i][j]);
          o = std::fma(S[i][j], x[at + i], o);
        }
        y[at + j] = o;
      }
    }
  }
  return 0;
}
