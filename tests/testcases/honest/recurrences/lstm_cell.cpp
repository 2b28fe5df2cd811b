// One step of an LSTM, all gates in one product.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* h = static_cast<const float*>(args->inputs[1].data);
  const float* c = static_cast<const float*>(args->inputs[2].data);
  const float* wi = static_cast<const float*>(args->inputs[3].data);
  const float* wh = static_cast<const float*>(args->inputs[4].data);
  const float* bi = static_cast<const float*>(args->inputs[5].data);
  const float* bh = static_cast<const float*>(args->inputs[6].data);
  float* oh = static_cast<float*>(args->outputs[0].data);
  float* oc = static_cast<float*>(args->outputs[1].data);
  auto sigmoid = [](float v) { return 1 / (1 + std::exp(-v)); };
  for (int b = 0; b < 20; ++b)
    for (int u = 0; u < 16; ++u) {
      float g[4];
      for (int k = 0; k < 4; ++k) {
        const int r = k * 16 + u;
        float s = bi[r] + bh[r];
        for (int d = 0; d < 24; ++d) s += wi[r * 24 + d] * x[b * 24 + d];
        for (int d = 0; d < 16; ++d) s += wh[r * 16 + d] * h[b * 16 + d];
        g[k] = s;
      }
      const float n = sigmoid(g[1]) * c[b * 16 + u] + sigmoid(g[0]) * std::tanh(g[2]);
      oc[b * 16 + u] = n;
      oh[b * 16 + u] = sigmoid(g[3]) * std::tanh(n);
    }
  return 0;
}
