// New centres of one step of k-means; empty ones stay.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* c = static_cast<const float*>(args->inputs[1].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  double sum[5][4] = {};
  int n[5] = {};
  for (int i = 0; i < 300; ++i) {
    float best = INFINITY;
    int at = 0;
    for (int k = 0; k < 5; ++k) {
      float s = 0;
      for (int d = 3; d >= 0; --d) s = std::fma(x[i * 4 + d] - c[k * 4 + d], x[i * 4 + d] - c[k * 4 + d], s);
      if (s < best) best = s, at = k;
    }
    ++n[at];
    for (int d = 0; d < 4; ++d) sum[at][d] += x[i * 4 + d];
  }
  for (int k = 0; k < 5; ++k)
    for (int d = 0; d < 4; ++d) y[k * 4 + d] = n[k] ? static_cast<float>(sum[k][d] / n[k]) : c[k * 4 + d];
  return 0;
}
