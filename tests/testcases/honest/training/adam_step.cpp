// One step of Adam, all three results in one loop.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  const float *p = static_cast<const float *>(args->inputs[0].data);
  const float *g = static_cast<const float *>(args->inputs[1].data);
  const float *m = static_cast<const float *>(args->inputs[2].data);
  const float *v = static_cast<const float *>(args->inputs[3].data);
  float *np = static_cast<float *>(args->outputs[0].data);
  float *nm = static_cast<float *>(args->outputs[1].data);
  float *nv = static_cast<float *>(args->outputs[2].data);
  const float c = static_cast<float>(1e-3 / (1 - std::pow(0.9, 10))),
              s = static_cast<float>(1 / std::sqrt(1 - std::pow(0.999, 10)));
  for (int i = 0; i < 5000; ++i) {
    nm[i] = std::fma(0.9f, m[i], 0.1f * g[i]);
    nv[i] = std::fma(0.999f, v[i], 0.001f * g[i] * g[i]);
    np[i] = p[i] - c * nm[i] / (std::sqrt(nv[i]) * s + 1e-8f);
  }
  return 0;
}
