// The running sum in double, until it is passed.
#include <grove/kernel.h>

#include <algorithm>
#include <cmath>

GROVE_KERNEL(args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const float* u = static_cast<const float*>(args->inputs[1].data);
  for (int r = 0; r < 256; ++r) {
    const float* v = x + r * 200;
    double t = 0, c = 0;
    float m = *std::max_element(v, v + 200);
    for (int j = 0; j < 200; ++j) t += std::exp(v[j] - m);
    int k = 0;
    for (; k < 199; ++k) {
      c += std::exp(v[k] - m);
      if (c / t >= u[r]) break;
    }
    static_cast<int64_t*>(args->outputs[0].data)[r] = k;
  }
  return 0;
}
