// A GRU over twelve steps.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* wi = static_cast<const float*>(args->inputs[1].data);
  const float* wh = static_cast<const float*>(args->inputs[2].data);
  const float* bi = static_cast<const float*>(args->inputs[3].data);
  const float* bh = static_cast<const float*>(args->inputs[4].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  auto sigmoid = [](float v) { return 1 / (1 + std::exp(-v)); };
  for (int b = 0; b < 6; ++b) {
    float h[8] = {};
    for (int t = 0; t < 12; ++t) {
      float n[8];
      for (int u = 0; u < 8; ++u) {
        float p[3], q[3];
        for (int k = 0; k < 3; ++k) {
          p[k] = bi[k * 8 + u];
          q[k] = bh[k * 8 + u];
          for (int d = 0; d < 10; ++d) p[k] += wi[(k * 8 + u) * 10 + d] * x[(t * 6 + b) * 10 + d];
          for (int d = 0; d < 8; ++d) q[k] += wh[(k * 8 + u) * 8 + d] * h[d];
        }
        const float z = sigmoid(p[1] + q[1]), m = std::tanh(p[2] + sigmoid(p[0] + q[0]) * q[2]);
        n[u] = m + z * (h[u] - m);
      }
      for (int u = 0; u < 8; ++u) y[(t * 6 + b) * 8 + u] = h[u] = n[u];
    }
  }
  return 0;
}
