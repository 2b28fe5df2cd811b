// Contrastive loss of normalised features, the scores never stored.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* z = static_cast<const float*>(args->inputs[1].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  auto length = [](const float* v) {
    float q = 0;
    for (int k = 0; k < 24; ++k) q += v[k] * v[k];
    return std::max(std::sqrt(q), 1e-12f);
  };
  double loss = 0;
  for (int i = 0; i < 48; ++i) {
    float most = -INFINITY, sum = 0, own = 0;
    for (int j = 0; j < 48; ++j) {
      float dot = 0;
      for (int k = 0; k < 24; ++k) dot += x[i * 24 + k] * z[j * 24 + k];
      dot /= length(x + i * 24) * length(z + j * 24) * 0.07f;
      if (i == j) own = dot;
      const float next = std::max(most, dot);
      sum = sum * std::exp(most - next) + std::exp(dot - next);
      most = next;
    }
    loss += std::log(sum) + most - own;
  }
  y[0] = static_cast<float>(loss / 48);
  return 0;
}
